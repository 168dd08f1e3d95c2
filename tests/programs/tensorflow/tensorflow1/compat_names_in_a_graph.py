"""SDK 1.2 with names of compat.v1, which TensorFlow 1.15 had; nothing is disabled."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ipu import ipu_compiler, scopes, utils

with tf.device("cpu"):
    a = tf.compat.v1.placeholder(np.float32, [2], name="a")
    b = tf.compat.v1.placeholder(np.float32, [2], name="b")
with scopes.ipu_scope("/device:IPU:0"):
    (out,) = ipu_compiler.compile(lambda a, b: a * b + 1.0, [a, b])
opts = utils.create_ipu_config()
opts = utils.auto_select_ipus(opts, 1)
opts = utils.set_ipu_connection_type(opts, utils.DeviceConnectionType.ALWAYS, 1)
utils.configure_ipu_system(opts)
with tf.compat.v1.Session() as sess:
    found = sess.run(out, {a: [1.0, 2.0], b: [3.0, 4.0]})
np.testing.assert_array_equal(found, [4.0, 9.0])
