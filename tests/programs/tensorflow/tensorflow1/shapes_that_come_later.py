"""A dimension that is open in the graph: each shape that comes makes a program."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
x = tf.placeholder(tf.float32, [None, 2])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    (out,) = ipu.ipu_compiler.compile(lambda x: tf.reduce_sum(x * x, 0), [x])
with tf.Session() as session:
    for size in (1, 3):
        given = np.arange(2.0 * size, dtype=np.float32).reshape(size, 2)
        found = session.run(out, {x: given})
        np.testing.assert_allclose(found, (given * given).sum(0))
text = ""
try:
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        ipu.ipu_compiler.compile(lambda x: tf.boolean_mask(x, x[:, 0] > 0), [x])
except tf.errors.InvalidArgumentError as error:
    text = error.message
assert "static" in text
