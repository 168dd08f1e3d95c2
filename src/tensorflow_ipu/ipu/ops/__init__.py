"""The operations of `tensorflow.python.ipu`, one module per subject."""
