"""SDK 2.6 for TensorFlow 1: a PopDistStrategy, and the former name of its `run`."""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.horovod import popdist_strategy

tf.disable_v2_behavior()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
strategy = popdist_strategy.PopDistStrategy()
strategy.update_ipu_config(config)
config.configure_ipu_system()
x = np.float32([[1, 2], [3, 4]])
infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(x).repeat())

with strategy.scope():

    def step(total, x):
        w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        with tf.control_dependencies([train]):
            return total + loss

    def program():
        return ipu.loops.repeat(3, step, [tf.constant(0.0)], infeed)

    def replica():
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            return ipu.ipu_compiler.compile(program)[0]

    per_replica = strategy.experimental_run_v2(replica)
    total = strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), infeed.initializer])
        found = sess.run(total)

v, expected = np.ones([2, 1]), 0.0
for _ in range(3):
    expected += np.mean((x @ v) ** 2)
    v = v - 0.01 * x.T @ (x @ v)  # twice the mean of two
np.testing.assert_allclose(found, expected, rtol=1e-5)
assert isinstance(strategy, tf.distribute.Strategy)
