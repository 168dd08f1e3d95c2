"""SDK 1.2: ipu.function, whose body exists once however often it is called."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

x = tf.placeholder(tf.float32, [2, 2])


def net(x):
    @ipu.function
    def layer(value):
        return tf.nn.relu(tf.matmul(value, value) - 1.0)

    return layer(layer(x))


with ipu.scopes.ipu_scope("/device:IPU:0"):
    (out,) = ipu.ipu_compiler.compile(net, [x])
opts = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
ipu.utils.configure_ipu_system(opts)
data = np.array([[1.0, 2.0], [0.5, 1.0]], np.float32)
with tf.Session() as sess:
    found = sess.run(out, {x: data})
once = np.maximum(data @ data - 1, 0)
np.testing.assert_allclose(found, np.maximum(once @ once - 1, 0), rtol=1e-6)
