"""IPUEstimator with options of create_ipu_config, as SDK 1.4 wrote it."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

x = np.arange(8, dtype=np.float32).reshape(8, 1) / 8


def input_fn(mode):
    data = tf.data.Dataset.from_tensor_slices((x, 2 * x)).batch(2, drop_remainder=True)
    return data.repeat() if mode == tf.estimator.ModeKeys.TRAIN else data


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
    loss = tf.losses.mean_squared_error(labels, tf.matmul(features, w))
    train = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


options = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), num_ipus=1)
ipu_run_config = ipu.ipu_run_config.IPURunConfig(
    iterations_per_loop=4, ipu_options=options, compile_summary=False
)
config = ipu.ipu_run_config.RunConfig(
    ipu_run_config=ipu_run_config, log_step_count_steps=4
)
estimator = ipu.ipu_estimator.IPUEstimator(model_fn=model_fn, config=config)
estimator.train(input_fn=input_fn, steps=8)
w = 0.0
for batch in [*x.reshape(4, 2), *x.reshape(4, 2)]:
    w -= 0.25 * np.mean(2 * (w * batch - 2 * batch) * batch)
np.testing.assert_allclose(np.ravel(estimator.get_variable_value("w")), w, rtol=1e-4)
assert estimator.get_variable_value("global_step") == 8
