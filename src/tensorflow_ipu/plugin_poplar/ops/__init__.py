"""The raw operators under `tensorflow.python.ipu`, one module per library."""
