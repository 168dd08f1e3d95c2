"""A model made outside the scope of the strategy, built layer by layer, run inside."""

import numpy as np
import tensorflow as tf
from _numbers import RATE, X, Y, batches, trained
from tensorflow.python import ipu

config = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
ipu.utils.configure_ipu_system(config)
dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
model = ipu.keras.Sequential([dense], accumulation_count=2)
model.build((4, 3))
assert [w.shape for w in model.get_weights()] == [(3, 1)]
assert model.model_layers == [dense]
assert isinstance(dense.kernel.numpy(), np.ndarray)  # no variable of a scratch graph
data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4, drop_remainder=True)
with ipu.ipu_strategy.IPUStrategy().scope():
    model.compile(tf.keras.optimizers.SGD(RATE), "mse")
    model.fit(data, verbose=0)
np.testing.assert_allclose(model.get_weights()[0], trained(batches(4, 8), 2), 1e-4)
