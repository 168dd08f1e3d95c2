"""Two IPUs by hand, and a ShardedOptimizer around the optimiser."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.optimizers.sharded_optimizer import ShardedOptimizer

x = tf.placeholder(tf.float32, [2, 2])


def net(x):
    with ipu.scopes.ipu_shard(0):
        w0 = tf.get_variable("w0", [2, 2], initializer=tf.ones_initializer())
        y = tf.matmul(x, w0)
    with ipu.scopes.ipu_shard(1):
        w1 = tf.get_variable("w1", [2, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_sum(tf.matmul(y, w1))
    train = ShardedOptimizer(tf.train.GradientDescentOptimizer(0.5)).minimize(loss)
    with tf.control_dependencies([train]):
        return tf.identity(loss)


with ipu.scopes.ipu_scope("/device:IPU:0"):
    out = ipu.ipu_compiler.compile(net, [x])
opts = ipu.utils.create_ipu_config()
ipu.utils.configure_ipu_system(ipu.utils.auto_select_ipus(opts, 2))
data = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
w0, w1, expected = np.ones((2, 2)), np.ones((2, 1)), []
for _ in range(2):
    y = data @ w0
    expected.append((y @ w1).sum())
    g1, g0 = y.sum(0)[:, None], data.sum(0)[:, None] @ w1.T
    w0, w1 = w0 - 0.5 * g0, w1 - 0.5 * g1
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    found = [sess.run(out, {x: data})[0] for _ in range(2)]
np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-5)
