"""Recurrent layers of ipu_tensorflow_addons, as SDK 2.5 had them for TensorFlow 1."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

from ipu_tensorflow_addons.layers import PopnnGRU, rnn_ops
from ipu_tensorflow_addons.layers.rnn_ops import PopnnDynamicGRU

x = tf.placeholder(tf.float32, [5, 2, 3])
half = {
    "weights_initializer": tf.constant_initializer(0.5),
    "bias_initializer": tf.zeros_initializer(),
}


def net(x):
    lengths = tf.constant([5, 5])
    return [PopnnGRU(4, **half)(x)[0], PopnnDynamicGRU(4, **half)(x, lengths)[0]]


with ipu.scopes.ipu_scope("/device:IPU:0"):
    out = ipu.ipu_compiler.compile(net, [x])
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


# Both gates are g = sigmoid(sum / 2) and the candidate is c = tanh((x + g h) / 2), in
# sums over channels: h = g h + (1 - g) c, the same for all units.
data = np.random.RandomState(0).randn(5, 2, 3).astype(np.float32)
state, states = np.zeros((2, 1)), []
for row in data.sum(-1, keepdims=True):
    gate = sigmoid((row + 4 * state) / 2)
    state = gate * state + (1 - gate) * np.tanh((row + 4 * gate * state) / 2)
    states.append(np.tile(state, 4))

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    plain, dynamic = session.run(out, {x: data})
np.testing.assert_allclose(plain, np.stack(states), rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(dynamic, plain, rtol=1e-5)
assert rnn_ops.PopnnGRU is PopnnGRU
