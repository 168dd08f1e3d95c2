"""TensorFlow imported first, no compat: placeholder, scope, compile, session."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

x = tf.placeholder(tf.float32, [4, 3], name="x")


def net(x):
    w = tf.get_variable("w", [3, 2], initializer=tf.constant_initializer(0.5))
    return tf.nn.relu(tf.matmul(x, w))


with ipu.scopes.ipu_scope("/device:IPU:0"):
    (out,) = ipu.ipu_compiler.compile(net, [x])
opts = ipu.utils.create_ipu_config(profiling=True, use_poplar_text_report=True)
opts = ipu.utils.auto_select_ipus(opts, 1)
ipu.utils.configure_ipu_system(opts)
data = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    found = sess.run(out, {x: data})
np.testing.assert_allclose(found, np.maximum(data @ np.full((3, 2), 0.5), 0), 1e-6)
assert isinstance(x.shape[0], tf.Dimension)
