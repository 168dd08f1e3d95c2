"""SDK 2.4: tf.keras in the scope of a strategy, pipelined, with an IPUConfig."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()
x = np.random.RandomState(0).rand(32, 3).astype(np.float32)
y = x.sum(1, keepdims=True)


def dense(units):
    return tf.keras.layers.Dense(units, use_bias=False, kernel_initializer="ones")


def trained(model, **options):
    model.compile(tf.keras.optimizers.SGD(0.005), "mse", **options)
    return model


with ipu.ipu_strategy.IPUStrategy().scope():
    model = tf.keras.Sequential([dense(2), dense(1)])
    model.set_pipeline_stage_assignment([0, 1])
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    trained(model, steps_per_execution=8)
    model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
plain = trained(tf.keras.Sequential([dense(2), dense(1)]))
plain.build((None, 3))
for start in (0, 16):  # the sum of the gradients of four batches of four
    with tf.GradientTape() as tape:
        error = plain(x[start : start + 16]) - y[start : start + 16]
        loss = 4 * tf.reduce_mean(tf.square(error))
    plain.optimizer.minimize(loss, plain.trainable_variables, tape=tape)
for found, expected in zip(model.get_weights(), plain.get_weights(), strict=True):
    np.testing.assert_allclose(found, expected, rtol=1e-4)
