"""A graph that the program makes, and leaves before it starts its queue."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

graph = tf.Graph()
with graph.as_default():
    data = tf.data.Dataset.from_tensor_slices(np.float32([1, 2, 3])).repeat()
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data, feed_name="in")

    def body(total, x):
        return total + x * x

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        (out,) = ipu.ipu_compiler.compile(
            lambda: ipu.loops.repeat(3, body, [tf.constant(0.0)], infeed), []
        )
config = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
ipu.utils.configure_ipu_system(config)
with tf.Session(graph=graph) as session:
    session.run(infeed.initializer)
    np.testing.assert_allclose(session.run(out), 1 + 4 + 9)
    session.run(infeed.deleter)
