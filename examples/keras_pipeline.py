"""Keras: a model split into pipeline stages, one to an IPU.

`PipelineStage` says to which stage layers belong. The IPUs work on different batches at
the same time; gradients of 16 batches make one update.
"""

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow import keras
from tensorflow.python import ipu

import popple

BATCH_SIZE = 16
ACCUMULATION = 16
NUM_IPUS = 4


def make_model():
    """Four stages; to be called in the scope of the strategy."""
    pixels = keras.Input(64)
    with keras.ipu.PipelineStage(0):
        x = keras.layers.Dense(256, activation="relu")(pixels)
    for stage in (1, 2):
        with keras.ipu.PipelineStage(stage):
            x = keras.layers.Dense(256, activation="relu")(x)
    with keras.ipu.PipelineStage(3):
        logits = keras.layers.Dense(10)(x)
    return keras.Model(pixels, logits)


def train(schedule, pixels, labels):
    """Train from the same start; returns the losses and the model of the machine."""
    keras.utils.set_random_seed(0)
    with ipu.ipu_strategy.IPUStrategy().scope():
        model = make_model()
        model.set_pipelining_options(
            gradient_accumulation_steps_per_replica=ACCUMULATION,
            gradient_accumulation_reduction_method="mean",
            pipeline_schedule=schedule,
        )
        model.compile(
            optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            steps_per_execution=2 * ACCUMULATION,
        )
        history = model.fit(pixels, labels, batch_size=BATCH_SIZE, epochs=4, verbose=0)
    return history.history["loss"], popple.modelled(model)


def print_run(schedule, losses, modelled):
    """Loss, and how much of the time each IPU works."""
    print(f"{schedule.name}: loss {losses[0]:.2f} to {losses[-1]:.2f}")
    simulation = modelled.simulation
    for chip, busy in enumerate(simulation.busy_cycles_by_chip):
        print(f"  IPU {chip} is busy {busy / simulation.cost.cycles:.0%} of the time")


def main():
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = NUM_IPUS
    config.configure_ipu_system()
    digits = load_digits()
    pixels = tf.constant(digits.data[:1536] / 16, tf.float32)
    labels = tf.constant(digits.target[:1536], tf.int32)

    # Sequential: the same stages, but one batch at a time.
    schedules = ipu.ops.pipelining_ops.PipelineSchedule
    in_turns, slow = train(schedules.Sequential, pixels, labels)
    side_by_side, fast = train(schedules.Grouped, pixels, labels)
    print_run(schedules.Sequential, in_turns, slow)
    print_run(schedules.Grouped, side_by_side, fast)
    print(f"losses are the same: {np.allclose(in_turns, side_by_side, rtol=1e-5)}")
    speed = fast.samples_per_second / slow.samples_per_second
    print(f"Grouped is {speed:.1f} times as fast")


if __name__ == "__main__":
    main()
