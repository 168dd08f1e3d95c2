"""Operations whose shapes have Dimensions in them: reduce_scatter, slices, lookups."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

rows = tf.placeholder(tf.float32, [4, 3])
ids = tf.placeholder(tf.int32, [5])


def net(rows, ids):
    scattered = ipu.ops.reduce_scatter_op.reduce_scatter(rows[:, 0], 1)
    sliced = ipu.slicing_ops.sequence_slice(
        tf.zeros([4, 3]), rows, [2], [1], [0], zero_unused=True
    )
    packed = ipu.slicing_ops.sequence_slice_unpack(rows, [1, 2], [3, 0], 4)
    table = tf.get_variable("table", [7, 3], initializer=tf.ones_initializer())
    looked_up = ipu.embedding_ops.embedding_lookup(table, ids)
    grad = tf.gradients(tf.reduce_sum(looked_up), [table])[0]
    normed = ipu.normalization_ops.group_norm(rows, groups=3, channels_axis=1)
    dropped = ipu.rand_ops.dropout(rows, rate=0.0, noise_shape=[4, 1])
    return scattered, sliced, packed, tf.convert_to_tensor(grad), normed, dropped


with ipu.scopes.ipu_scope("/device:IPU:0"):
    out = ipu.ipu_compiler.compile(net, [rows, ids])
opts = ipu.utils.create_ipu_config()
ipu.utils.configure_ipu_system(ipu.utils.auto_select_ipus(opts, 1))
data = np.arange(12, dtype=np.float32).reshape(4, 3)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    found = sess.run(out, {rows: data, ids: [0, 1, 1, 6, 6]})
np.testing.assert_array_equal(found[0], data[:, 0])
np.testing.assert_array_equal(found[1], [*data[1:3], [0] * 3, [0] * 3])
np.testing.assert_array_equal(found[2], [data[3], data[0], data[1], [0] * 3])
counts = np.bincount([0, 1, 1, 6, 6], minlength=7)
np.testing.assert_array_equal(found[3], np.repeat(counts[:, None], 3, 1))
np.testing.assert_allclose(found[4], np.zeros((4, 3)), atol=1e-6)  # groups of one
np.testing.assert_array_equal(found[5], data)
