"""SDK 1.4: a summary of the events of the device, and one of a number."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import summary_ops

x = tf.placeholder(tf.float32, [2])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    (out,) = ipu.ipu_compiler.compile(lambda x: x * 2.0, [x])
tf.summary.scalar("total", tf.reduce_sum(out))
summary_ops.ipu_compile_summary("compile_summary", out)
merged = tf.summary.merge_all()
config = ipu.utils.create_ipu_config(profiling=True)
ipu.utils.configure_ipu_system(ipu.utils.auto_select_ipus(config, 1))
with tf.Session() as session:
    text = session.run(merged, {x: [1.0, 2.0]})
values = {value.tag: value for value in tf.Summary.FromString(text).value}
np.testing.assert_allclose(values["total"].simple_value, 6.0)
assert len(values["compile_summary"].tensor.string_val) >= 1
