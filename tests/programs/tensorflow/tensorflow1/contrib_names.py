"""What published programs use of tf.contrib; the rest is refused by name."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib.compiler import xla
from tensorflow.contrib.data import map_and_batch
from tensorflow.contrib.framework.python.framework import checkpoint_utils
from tensorflow.contrib.opt.python.training.lars_optimizer import LARSOptimizer
from tensorflow.python import ipu

assert tf.contrib.rnn.LSTMStateTuple is tf.nn.rnn_cell.LSTMStateTuple
assert checkpoint_utils.list_variables is tf.train.list_variables
assert tf.contrib.data.AUTOTUNE == tf.data.experimental.AUTOTUNE
data = tf.data.Dataset.range(6).apply(map_and_batch(lambda x: x * 2, 3))
element = tf.data.make_one_shot_iterator(data).get_next()
penalty = tf.contrib.layers.l2_regularizer(0.5)(tf.constant([2.0, 4.0]))


def net(x):
    init = tf.contrib.layers.xavier_initializer(dtype=tf.float32)
    w = tf.get_variable("w", [8, 8], initializer=init)
    y = tf.contrib.layers.layer_norm(tf.matmul(x, w))
    loss = tf.reduce_mean(tf.square(y - 1.0))
    train = LARSOptimizer(0.1, momentum=0.0, weight_decay=0.0).minimize(loss)
    with tf.control_dependencies([train]):
        return y, tf.identity(loss), w


x = tf.placeholder(tf.float32, [2, 8])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    out = xla.compile(net, [x])
opts = ipu.utils.create_ipu_config()
ipu.utils.configure_ipu_system(ipu.utils.auto_select_ipus(opts, 1))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    y, loss, w = sess.run(out, {x: np.eye(2, 8, dtype=np.float32)})
    assert list(sess.run(element)) == [0, 2, 4]
    assert sess.run(penalty) == 0.5 * (4 + 16) / 2
np.testing.assert_allclose(y.mean(1), [0, 0], atol=1e-5)
np.testing.assert_allclose(y.var(1), [1, 1], rtol=1e-4)
np.testing.assert_allclose(loss, 2.0, rtol=1e-4)  # mean of (y - 1)^2, y of N(0, 1)
assert np.abs(w).max() < np.sqrt(6 / 16) + 0.1
refusals = []
for name in ("slim", "learn", "layers.fully_connected"):
    try:
        eval(f"tf.contrib.{name}")
    except AttributeError as error:
        refusals.append(str(error))
assert [text.rpartition(" Use ")[2] for text in refusals] == [
    "the package tf_slim.",
    "tf.estimator.",
    "tf.layers.dense.",
]
