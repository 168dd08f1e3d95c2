"""IPUPipelineEstimator of SDK 1.4: a loop's iterations are weight updates."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

x = np.arange(8, dtype=np.float32).reshape(8, 1) / 8


def input_fn():
    data = tf.data.Dataset.from_tensor_slices((x, 2 * x))
    return data.batch(1, drop_remainder=True).repeat()


def stage1(features, labels):
    w = tf.get_variable("w1", [1, 1], initializer=tf.ones_initializer())
    return tf.matmul(features, w), labels


def stage2(hidden, labels):
    w = tf.get_variable("w2", [1, 1], initializer=tf.ones_initializer())
    return tf.losses.mean_squared_error(labels, tf.matmul(hidden, w))


def model_fn(mode):
    return ipu.ipu_pipeline_estimator.IPUPipelineEstimatorSpec(
        mode,
        computational_stages=[stage1, stage2],
        pipeline_depth=4,
        optimizer_function=lambda loss: ipu.ops.pipelining_ops.OptimizerFunctionOutput(
            tf.train.GradientDescentOptimizer(0.05), loss
        ),
    )


options = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), num_ipus=2)
run_config = ipu.ipu_run_config.IPURunConfig(
    iterations_per_loop=2, ipu_options=options, num_shards=2
)
config = ipu.ipu_run_config.RunConfig(ipu_run_config=run_config)
estimator = ipu.ipu_pipeline_estimator.IPUPipelineEstimator(model_fn, config=config)
estimator.train(input_fn, steps=4)
w1 = w2 = 1.0
for start in (0, 4, 0, 4):  # two loops of two updates of four batches
    part = x[start : start + 4]
    g = 2 * np.sum((w1 * w2 - 2) * part * part)
    w1, w2 = w1 - 0.05 * g * w2, w2 - 0.05 * g * w1
found = [estimator.get_variable_value(name) for name in ("w1", "w2")]
np.testing.assert_allclose(np.ravel(found), [w1, w2], rtol=1e-4)
