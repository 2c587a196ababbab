"""What a queue tells about its own work: one observation, whoever asks for it.

`schema` is its form, `decoding` reads it, the meters gather it.
"""
