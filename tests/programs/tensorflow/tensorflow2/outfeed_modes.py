"""Queues of SDK 2.2: names are optional; the mode may come second."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    every = IPUOutfeedQueue("every", IPUOutfeedMode.ALL, 0, 1, 1)
    last = IPUOutfeedQueue(feed_name="last", outfeed_mode=IPUOutfeedMode.LAST)

    @tf.function
    def program():
        for i in tf.range(4):
            every.enqueue(tf.cast(i, tf.float32))
            last.enqueue(tf.cast(i * i, tf.float32))

    strategy.run(program)
    np.testing.assert_array_equal(every.dequeue(), [0, 1, 2, 3])
    np.testing.assert_array_equal(last.dequeue(), 9)
