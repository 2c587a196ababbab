"""What operators are given: the restore drill, and the files under ops/ held against the code."""
