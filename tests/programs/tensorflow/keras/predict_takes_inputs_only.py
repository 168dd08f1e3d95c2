"""predict on a data set whose elements are all inputs: two of them here."""

import numpy as np
import tensorflow as tf
from _numbers import X
from tensorflow.python import ipu

config = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
ipu.utils.configure_ipu_system(config)
data = tf.data.Dataset.from_tensor_slices((X, 2 * X)).batch(4, drop_remainder=True)
with ipu.ipu_strategy.IPUStrategy().scope():
    a, b = tf.keras.Input(3), tf.keras.Input(3)
    model = ipu.keras.Model([a, b], tf.keras.layers.Add()([a, b]))
    model.compile("sgd", "mse")
    found = model.predict(data, steps_per_run=2)
    some = model.predict(data, steps=3)
    refusal = ""
    try:
        labelled = tf.data.Dataset.zip((data, data))
        model.predict(labelled)
    except ValueError as error:
        refusal = str(error)
np.testing.assert_allclose(found, 3 * X, rtol=1e-6)
np.testing.assert_allclose(some, 3 * X[:12], rtol=1e-6)
assert "inputs only" in refusal
