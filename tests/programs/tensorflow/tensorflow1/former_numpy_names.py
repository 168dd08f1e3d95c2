"""Types and constants by the names that NumPy had when the program was written."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.utils.create_ipu_config()
config = ipu.utils.auto_select_ipus(config, 1)
ipu.utils.configure_ipu_system(config)

best = np.Inf
x = tf.placeholder(np.float32, [4])
mask = tf.constant(np.array([1, 0, 1, 1]).astype(np.int), tf.int32)


def masked_sum(values):
    return tf.reduce_sum(values * tf.cast(mask, tf.float32))


with ipu.scopes.ipu_scope("/device:IPU:0"):
    [total] = ipu.ipu_compiler.compile(masked_sum, [x])

with tf.Session() as session:
    best = min(best, session.run(total, {x: np.arange(4, dtype=np.float)}))
assert best == 0 + 2 + 3
