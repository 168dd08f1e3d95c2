"""SDK 1.2: queues with feed names by position, and a loop that trains from them."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ipu import (
    ipu_compiler,
    ipu_infeed_queue,
    ipu_outfeed_queue,
    loops,
    scopes,
    utils,
)

xs = np.arange(8, dtype=np.float32).reshape(8, 1) / 8
dataset = tf.data.Dataset.from_tensor_slices((xs, 3 * xs)).batch(1, True).repeat()
infeed = ipu_infeed_queue.IPUInfeedQueue(dataset, "train_in", replication_factor=1)
outfeed = ipu_outfeed_queue.IPUOutfeedQueue("train_out", outfeed_all=True)


def step(x, y):
    w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
    loss = tf.losses.mean_squared_error(y, tf.matmul(x, w))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.control_dependencies([train]):
        return outfeed.enqueue(loss)


def program():
    return loops.repeat(16, step, [], infeed)


with scopes.ipu_scope("/device:IPU:0"):
    run = ipu_compiler.compile(program, [])
utils.configure_ipu_system(utils.auto_select_ipus(utils.create_ipu_config(), 1))
utils.move_variable_initialization_to_cpu()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(infeed.initializer)
    sess.run(run)
    losses = sess.run(outfeed.dequeue())
w, expected = 0.0, []
for x in np.concatenate([xs[:, 0], xs[:, 0]]):
    expected.append((3 * x - w * x) ** 2)
    w -= 0.1 * 2 * (w * x - 3 * x) * x
np.testing.assert_allclose(np.ravel(losses), expected, rtol=1e-4, atol=1e-6)
