"""The TensorFlow facade: what IPU programs import from TensorFlow and Keras.

Programs import nothing under this package's own name: its folders are served under the
names that they use (`tensorflow.python.ipu`, `keras.ipu`, ...), by the import finder
that `boot` puts in place when Python starts. What the folders share lies here:
`_translate` understands options, `_types` names what is accepted.
"""

__all__ = ["SWITCH"]

# The environment variable: "off" leaves TensorFlow and Keras as they are installed,
# "on" takes every program for one of the IPU, anything else finds out.
SWITCH = "POPPLE_TENSORFLOW"
