"""SDK 2.1: steps_per_epoch counts weight updates, each of four batches."""

import numpy as np
import tensorflow as tf
from _numbers import RATE, X, Y, batches, trained
from tensorflow.python import ipu

config = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
ipu.utils.configure_ipu_system(config)
data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(2, drop_remainder=True).repeat()
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = ipu.keras.Sequential([dense], gradient_accumulation_count=4)
    model.compile(tf.keras.optimizers.SGD(RATE), "mse")
    history = model.fit(data, steps_per_epoch=3, epochs=2, verbose=0, steps_per_run=1)
# 2 epochs of 3 updates of 4 batches: 24 batches, not 6.
np.testing.assert_allclose(model.get_weights()[0], trained(batches(2, 24), 4), 1e-4)
assert model.optimizer.iterations.numpy() == 6
assert len(history.history["loss"]) == 2
