"""SDK 1.2: two replicas, queues with replication_factor, ipu_optimizer's old class."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import ipu_optimizer

x = np.arange(8, dtype=np.float32).reshape(8, 1) / 8
data = tf.data.Dataset.from_tensor_slices(x).batch(1, drop_remainder=True).repeat()
infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data, feed_name="in", replication_factor=2)
outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue("out", replication_factor=2)


def step(x):
    w = tf.get_variable("w", [1, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 2 * x))
    inner = tf.train.GradientDescentOptimizer(0.5)
    train = ipu_optimizer.CrossReplicaOptimizer(inner).minimize(loss)
    with tf.control_dependencies([train]):
        return outfeed.enqueue(loss)


with ipu.scopes.ipu_scope("/device:IPU:0"):
    program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(4, step, [], infeed))
opts = ipu.utils.create_ipu_config(max_cross_replica_sum_buffer_size=1024)
opts = ipu.utils.auto_select_ipus(opts, 2)
ipu.utils.configure_ipu_system(opts)
fetched = outfeed.dequeue()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(infeed.initializer)
    sess.run(program)
    losses = sess.run(fetched)
w, expected = 1.0, []
for pair in x.reshape(4, 2):  # one element for each replica
    expected.append((w * pair - 2 * pair) ** 2)
    w -= 0.5 * np.mean(2 * (w * pair - 2 * pair) * pair)
np.testing.assert_allclose(losses.reshape(4, 2), expected, rtol=1e-4)
