"""A program for TensorFlow 2 finds TensorFlow 2, also where it asks for the version."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

if tf.__version__[0] != "2":
    raise ImportError("TensorFlow 2 is required for this program")
if hasattr(tf, "placeholder") or hasattr(tf, "contrib"):
    raise ImportError("This is TensorFlow 1")
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    w = tf.Variable([1.0, 2.0])
    optimizer = tf.optimizers.SGD(0.5)

    @tf.function
    def step():
        optimizer.minimize(lambda: tf.reduce_sum(w * w), [w])
        return tf.identity(w)

    np.testing.assert_array_equal(strategy.run(step), [0.0, 0.0])
assert isinstance(w.shape[0], int)
