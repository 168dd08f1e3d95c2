"""TensorFlow 2.1: create_ipu_config, an IPUStrategy and experimental_run_v2."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

opts = ipu.utils.create_ipu_config()
opts = ipu.utils.auto_select_ipus(opts, 1)
ipu.utils.configure_ipu_system(opts)
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    w = tf.Variable([[1.0], [2.0]])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w - y))
        (grad,) = tape.gradient(loss, [w])
        w.assign_sub(0.1 * grad)
        return loss

    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    y = np.array([[1.0], [0.0]], np.float32)
    losses = [strategy.experimental_run_v2(step, args=[x, y]) for _ in range(3)]
v, expected = np.array([[1.0], [2.0]]), []
for _ in range(3):
    error = x @ v - y
    expected.append(np.mean(error**2))
    v = v - 0.1 * x.T @ error
np.testing.assert_allclose(losses, expected, rtol=1e-4)
assert tf.executing_eagerly()
assert not hasattr(tf, "placeholder")
