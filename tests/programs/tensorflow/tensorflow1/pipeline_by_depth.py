"""SDK 1.4: pipelining_ops.pipeline with pipeline_depth, and old queue arguments."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.ops import pipelining_ops

x = np.arange(8, dtype=np.float32).reshape(8, 1) / 8
dataset = tf.data.Dataset.from_tensor_slices((x, 2 * x)).batch(1, True).repeat()
infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset, feed_name="in")
outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue(feed_name="out")


def stage1(x, y):
    w = tf.get_variable("w1", [1, 1], initializer=tf.ones_initializer())
    return tf.matmul(x, w), y


def stage2(x, y):
    w = tf.get_variable("w2", [1, 1], initializer=tf.ones_initializer())
    return tf.reduce_sum(tf.square(tf.matmul(x, w) - y))


def optimizer_function(loss):
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    return pipelining_ops.OptimizerFunctionOutput(optimizer, loss)


def program():
    return pipelining_ops.pipeline(
        computational_stages=[stage1, stage2],
        pipeline_depth=8,
        repeat_count=2,
        inputs=[],
        infeed_queue=infeed,
        outfeed_queue=outfeed,
        optimizer_function=optimizer_function,
        name="Pipeline",
    )


with ipu.scopes.ipu_scope("/device:IPU:0"):
    run = ipu.ipu_compiler.compile(program, [])
opts = ipu.utils.create_ipu_config()
opts = ipu.utils.auto_select_ipus(opts, 2)
ipu.utils.configure_ipu_system(opts)
fetched = outfeed.dequeue()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(infeed.initializer)
    sess.run(run)
    losses = np.ravel(sess.run(fetched))
w1 = w2 = 1.0
expected = []
for _ in range(2):
    error = w1 * w2 * x - 2 * x
    expected.extend(np.ravel(error**2))
    g = 2 * np.sum(error * x)
    w1, w2 = w1 - 0.01 * g * w2, w2 - 0.01 * g * w1
np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-6)
