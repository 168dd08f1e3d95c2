"""tensorflow.python.keras is the Keras of tf.keras: parts of both make one model."""

import keras
import numpy as np
import tensorflow as tf
from _numbers import X, Y
from tensorflow.python import ipu
from tensorflow.python.keras.layers import Dense, Input
from tensorflow.python.keras.optimizer_v2.adam import Adam
from tensorflow.python.keras.preprocessing import sequence

assert Dense is tf.keras.layers.Dense is keras.layers.Dense
padded = sequence.pad_sequences([[1], [1, 2]], maxlen=2)
np.testing.assert_array_equal(padded, [[0, 1], [1, 2]])
config = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
ipu.utils.configure_ipu_system(config)


def made(cls):
    inputs = Input(3)
    hidden = Dense(2, kernel_initializer="ones")(inputs)
    return cls(inputs, tf.keras.layers.Dense(1, kernel_initializer="ones")(hidden))


plain = made(tf.keras.Model)
plain.compile(Adam(0.01), "mse")
plain.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
with ipu.ipu_strategy.IPUStrategy().scope():
    model = made(ipu.keras.Model)
    model.compile(Adam(0.01), "mse")
    model.fit(X, Y, batch_size=8, verbose=0)
for found, expected in zip(model.get_weights(), plain.get_weights(), strict=True):
    np.testing.assert_allclose(found, expected, rtol=1e-4)
