"""The program itself uses no name of version 1: a module beside it does."""

import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _helper_module as helper

with ipu.scopes.ipu_scope("/device:IPU:0"):
    (out,) = ipu.ipu_compiler.compile(lambda: helper.variable("v") * 3.0, [])
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
assert not tf.executing_eagerly()
with tf.compat.v1.Session() as sess:
    sess.run(tf.compat.v1.global_variables_initializer())
    np.testing.assert_array_equal(sess.run(out), [3.0, 3.0])
