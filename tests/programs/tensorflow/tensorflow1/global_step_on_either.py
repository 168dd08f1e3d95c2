"""The counter of steps may live on the host or, at a price, on the IPU."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()


def count(device):
    """Two steps of gradient descent on w * w from 1, and the counter."""
    tf.reset_default_graph()
    tf.get_variable_scope().set_use_resource(True)
    with tf.device(device):
        steps = tf.train.get_or_create_global_step()

    def model():
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        return w, tf.train.GradientDescentOptimizer(0.1).minimize(w * w)

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        out = ipu.ipu_compiler.compile(model, [])
    with tf.device(device):
        counted = tf.assign_add(steps, 1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(out)
            session.run(counted)
        return session.run([steps, *tf.trainable_variables()])


for device in ("cpu", "/device:IPU:0"):
    # Each step takes 0.1 * 2 w away from w.
    np.testing.assert_allclose(count(device), [2, 0.64], rtol=1e-6)
