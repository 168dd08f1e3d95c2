"""Names that both versions have, and a saver used after its graph is left."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

graph = tf.Graph()
with graph.as_default():

    def net():
        w = tf.compat.v1.get_variable(
            "w", [2], initializer=tf.ones_initializer(), use_resource=True
        )
        with tf.control_dependencies([w.assign_add([1.0, 2.0])]):
            return w.read_value()

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        (out,) = ipu.ipu_compiler.compile(net)
    start = tf.compat.v1.global_variables_initializer()
    saver = tf.compat.v1.train.Saver()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
session = tf.compat.v1.Session(graph=graph)
session.run(start)
np.testing.assert_array_equal(session.run(out), [2.0, 3.0])
path = saver.save(session, os.path.join(tempfile.mkdtemp(), "model.ckpt"))
session.run(out)
saver.restore(session, path)
np.testing.assert_array_equal(session.run(out), [3.0, 5.0])
