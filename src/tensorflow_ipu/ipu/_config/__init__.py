"""Parts of `tensorflow.python.ipu.config`: attributes, categories, old calls."""
