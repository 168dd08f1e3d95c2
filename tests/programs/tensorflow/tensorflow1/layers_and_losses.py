"""tf.layers, tf.losses, tf.metrics and keep_prob, which version 2 has no more."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

x = tf.placeholder(tf.float32, [4, 6, 6, 1])
labels = tf.placeholder(tf.int32, [4])


def net(x, labels):
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        ones = tf.constant_initializer(0.1)
        y = tf.layers.conv2d(x, 2, 3, kernel_initializer=ones, activation=tf.nn.relu)
        y = tf.layers.max_pooling2d(y, 2, 2)
        y = tf.layers.flatten(tf.nn.dropout(y, keep_prob=1.0))
        scale = tf.constant_initializer(0.25)
        logits = tf.layers.dense(y, 3, kernel_initializer=scale)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return loss, tf.reduce_sum(logits, axis=1, keep_dims=True)


with ipu.scopes.ipu_scope("/device:IPU:0"):
    out = ipu.ipu_compiler.compile(net, [x, labels])
with tf.device("cpu"):
    plain = net(x, labels)
opts = ipu.utils.create_ipu_config()
ipu.utils.configure_ipu_system(ipu.utils.auto_select_ipus(opts, 1))
feed = {x: np.random.RandomState(0).rand(4, 6, 6, 1), labels: [0, 1, 2, 0]}
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    found, expected = sess.run(out, feed), sess.run(list(plain), feed)
np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
np.testing.assert_allclose(found[0], np.log(3), rtol=1e-5)  # three equal logits
