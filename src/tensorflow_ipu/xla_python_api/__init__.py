"""`tensorflow.compiler.xla.python_api`, as far as programs for the IPU use it."""
