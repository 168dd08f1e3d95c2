"""PipelineSequential and PipelineModel: steps are updates there too."""

import numpy as np
import tensorflow as tf
from _numbers import X, Y
from tensorflow.python import ipu

config = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 2)
ipu.utils.configure_ipu_system(config)
data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4, drop_remainder=True).repeat()


def dense(units):
    return tf.keras.layers.Dense(units, use_bias=False, kernel_initializer="ones")


with ipu.ipu_strategy.IPUStrategy().scope():
    inputs = tf.keras.Input(3)
    with ipu.keras.PipelineStage(0):
        hidden = dense(2)(inputs)
    with ipu.keras.PipelineStage(1):
        outputs = dense(1)(hidden)
    scoped = ipu.keras.PipelineModel(inputs, outputs, gradient_accumulation_count=4)
    listed = ipu.keras.PipelineSequential([[dense(2)], [dense(1)]], 4)
    named = ipu.keras.SequentialPipelineModel(
        [[dense(2)], [dense(1)]], pipeline_depth=4
    )
    for model in (scoped, listed, named):
        model.compile(tf.keras.optimizers.SGD(0.01), "mse")
        model.fit(data, steps_per_epoch=2, epochs=2, verbose=0)
plain = tf.keras.Sequential([dense(2), dense(1)])
plain.build((4, 3))
optimizer = tf.keras.optimizers.SGD(0.01)
batches = data.as_numpy_iterator()
for _ in range(4):
    total = None
    for _ in range(4):
        x, y = next(batches)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(plain(x) - y))
        grads = tape.gradient(loss, plain.trainable_variables)
        total = grads if total is None else list(map(tf.add, total, grads))
    pairs = zip(total, plain.trainable_variables, strict=True)
    optimizer.apply_gradients(pairs)
for model in (scoped, listed, named):
    for found, expected in zip(model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4)
