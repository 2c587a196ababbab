"""What the documentation says, held against what is there."""
