"""Two compiled programs with layers of their own in one graph."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

x = tf.placeholder(tf.float32, [4, 3])


def net(x):
    ones = tf.ones_initializer()
    hidden = tf.layers.dense(x, 2, use_bias=False, kernel_initializer=ones)
    return tf.layers.dense(hidden, 1, use_bias=False, kernel_initializer=ones)


with ipu.scopes.ipu_scope("/device:IPU:0"):
    (first,) = ipu.ipu_compiler.compile(net, [x])
    (second,) = ipu.ipu_compiler.compile(net, [x])
opts = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
ipu.utils.configure_ipu_system(opts)
data = np.arange(12, dtype=np.float32).reshape(4, 3)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    found = sess.run([first, second], {x: data})
expected = data @ np.ones((3, 2)) @ np.ones((2, 1))
np.testing.assert_allclose(found, [expected, expected], rtol=1e-6)
assert len({variable.name for variable in tf.trainable_variables()}) == 4
