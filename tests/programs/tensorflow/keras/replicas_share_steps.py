"""Two replicas: steps are counted over both, gradients are summed."""

import numpy as np
import tensorflow as tf
from _numbers import RATE, X, Y, batches, trained
from tensorflow.python import ipu

config = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 2)
ipu.utils.configure_ipu_system(config)
data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(2, drop_remainder=True).repeat()
with ipu.ipu_strategy.IPUStrategy().scope():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = ipu.keras.Sequential([dense], gradient_accumulation_count=2)
    model.compile(tf.keras.optimizers.SGD(RATE), "mse")
    model.fit(data, steps_per_epoch=4, verbose=0)
# 4 steps of 2 batches are 8 batches; an update takes 2 on each of 2 replicas.
np.testing.assert_allclose(model.get_weights()[0], trained(batches(2, 8), 4), 1e-4)
