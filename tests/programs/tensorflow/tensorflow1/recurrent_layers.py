"""PopnnLSTM, PopnnGRU, dynamic GRU and AUGRU with the shapes of version 1."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import rnn_ops

x = tf.placeholder(tf.float32, [5, 2, 3])
lengths = tf.placeholder(tf.int32, [2])


def net(x, lengths):
    ones = tf.constant_initializer(0.2)
    more = {"weights_initializer": ones, "bias_initializer": tf.zeros_initializer()}
    lstm, _ = rnn_ops.PopnnLSTM(4, **more)(x)
    gru, _ = rnn_ops.PopnnGRU(4, **more)(x)
    dynamic, _ = rnn_ops.PopnnDynamicGRU(4, **more)(x, lengths)
    scores = tf.zeros([5, 2])
    augru = rnn_ops.PopnnAUGRU(4, **more)
    attended, _ = augru(x, lengths, scores)
    by_batch = tf.transpose(x, [1, 0, 2]), lengths, tf.transpose(scores)
    same, _ = augru(*by_batch, time_major=False)
    loss = tf.reduce_sum(lstm) + tf.reduce_sum(gru) + tf.reduce_sum(dynamic)
    grads = tf.gradients(loss + tf.reduce_sum(attended), tf.trainable_variables())
    return [lstm, gru, dynamic, attended, same, *grads]


with ipu.scopes.ipu_scope("/device:IPU:0"):
    out = ipu.ipu_compiler.compile(net, [x, lengths])
opts = ipu.utils.create_ipu_config()
ipu.utils.configure_ipu_system(ipu.utils.auto_select_ipus(opts, 1))
data = np.random.RandomState(0).randn(5, 2, 3).astype(np.float32)


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def lstm(data):
    w, h, c, hs = np.full((7, 4), 0.2), np.zeros((2, 4)), np.zeros((2, 4)), []
    for row in data:
        z = np.concatenate([row, h], 1) @ w  # all gates have the same weights
        c = sigmoid(z) * c + sigmoid(z) * np.tanh(z)
        h = sigmoid(z) * np.tanh(c)
        hs.append(h)
    return np.stack(hs)


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    found = sess.run(out, {x: data, lengths: [5, 5]})
np.testing.assert_allclose(found[0], lstm(data), rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(found[1], found[2], rtol=1e-5)  # of full length: the same
np.testing.assert_allclose(found[1], found[3], rtol=1e-5)  # a score of 0 changes none
np.testing.assert_allclose(found[3], found[4])  # the batch first, in SDK 2.0 to 2.5
assert len(found) == 13
assert all(np.isfinite(grad).all() for grad in found[5:])
