"""A pipeline with statistics, which tf.data had until TensorFlow 2.5: all empty."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ipu import ipu_compiler, ipu_infeed_queue, loops, scopes, utils

dataset = tf.data.Dataset.from_tensor_slices(np.float32([1, 2, 3])).repeat()
statistics = tf.data.experimental.StatsAggregator()
dataset = dataset.apply(tf.data.experimental.latency_stats("latency"))
dataset = dataset.apply(tf.data.experimental.bytes_produced_stats("bytes"))
tf.add_to_collection(tf.GraphKeys.SUMMARIES, statistics.get_summary())
options = tf.data.Options()
options.experimental_stats.aggregator = statistics
assert options.experimental_stats.aggregator is statistics
infeed = ipu_infeed_queue.IPUInfeedQueue(dataset.with_options(options), "in")


def total():
    return loops.repeat(3, lambda sum, x: sum + x, [tf.constant(0.0)], infeed)


with scopes.ipu_scope("/device:IPU:0"):
    out = ipu_compiler.compile(total, [])
utils.configure_ipu_system(utils.auto_select_ipus(utils.create_ipu_config(), 1))
with tf.Session() as sess:
    sess.run(infeed.initializer)
    np.testing.assert_array_equal(sess.run(out), [6.0])
    assert sess.run(tf.summary.merge_all()) == b""
