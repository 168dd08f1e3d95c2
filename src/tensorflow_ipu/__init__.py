"""The TensorFlow facade: what IPU programs import from TensorFlow and Keras.

Nothing is imported under this package's own name but `boot`: its folders are served
under the names programs use (`tensorflow.python.ipu`, `keras.ipu`, ...), by the import
finder that `boot` puts in place when Python starts.
"""

__all__ = ["SWITCH"]

# The environment variable: "off" leaves TensorFlow and Keras as they are installed,
# "on" takes every program for one of the IPU, anything else finds out.
SWITCH = "POPPLE_TENSORFLOW"
