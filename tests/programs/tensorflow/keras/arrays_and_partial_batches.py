"""Arrays with accumulation: the partial batch at the end is dropped."""

import numpy as np
import tensorflow as tf
from _numbers import RATE, X, Y, batches, trained
from tensorflow.python import ipu

config = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
ipu.utils.configure_ipu_system(config)
with ipu.ipu_strategy.IPUStrategy().scope():
    inputs = tf.keras.Input(3)
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = ipu.keras.Model(inputs, dense(inputs), accumulation_count=3)
    model.compile(tf.keras.optimizers.SGD(RATE), "mse")
    # 32 samples are 6 batches of 5, and 2 samples that are left out.
    model.fit(X.astype(np.float64), Y.astype(np.float64), batch_size=5, verbose=0)
    found = model.evaluate(X, Y, batch_size=5, verbose=0)
    predicted = model.predict(X, batch_size=5)
w = trained(batches(5, 6), 3)
np.testing.assert_allclose(model.get_weights()[0], w, rtol=1e-4)
assert isinstance(found, list)
np.testing.assert_allclose(found, [np.mean((X[:30] @ w - Y[:30]) ** 2)], rtol=1e-4)
np.testing.assert_allclose(predicted, X[:30] @ w, rtol=1e-4)
