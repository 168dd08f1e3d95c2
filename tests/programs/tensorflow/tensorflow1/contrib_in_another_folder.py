"""SDK 1.4: all is said with compat.v1, and `contrib` in a module that is found late."""

import importlib
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ipu import ipu_compiler, scopes, utils

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
model = importlib.import_module("_contrib_module")


def step(x):
    loss = tf.reduce_sum(tf.matmul(x, model.weights([3, 2])))
    return loss, tf.train.GradientDescentOptimizer(0.5).minimize(loss)


assert not tf.executing_eagerly()
x = tf.placeholder(tf.float32, [1, 3])
with scopes.ipu_scope("/device:IPU:0"):
    out = ipu_compiler.compile(step, [x])
utils.configure_ipu_system(utils.auto_select_ipus(utils.create_ipu_config(), 1))
utils.move_variable_initialization_to_cpu()
given = np.float32([[1, 2, 3]])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    (before,) = session.run(tf.trainable_variables())
    session.run(out, {x: given})
    (after,) = session.run(tf.trainable_variables())
# The gradient of the sum of x w is x, in every column.
np.testing.assert_allclose(after, before - 0.5 * given.T, rtol=1e-6)
