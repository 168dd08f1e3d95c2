"""Keras `fit` under IPUStrategy against stock Keras, side by side.

    python benchmarks/keras.py [--rounds 5] [--only TEXT] [--half]

Same model, same weights, same data, same number of threads; both are compiled and warm,
then measured in turns. A ratio above 1 means that the IPU program is faster; the second
is of processor time, which other programs on the computer change less. With `--half`
the IPU program computes in half precision, and stock Keras still in float32.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# The folder of this file would shadow the package of the same name.
sys.path[0] = str(Path(__file__).resolve().parents[1])
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python import ipu  # noqa: E402

keras = tf.keras


def build_mlp() -> Any:
    """An MLP on vectors of 784."""
    return keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


def build_cnn() -> Any:
    """A CNN on images of 28x28."""
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )


def build_transformer() -> Any:
    """Two small transformer blocks on sequences of 32 vectors of 64."""
    given = keras.Input((32, 64))
    x = given
    for _ in range(2):
        attended = keras.layers.MultiHeadAttention(4, 16)(x, x)
        x = keras.layers.LayerNormalization()(x + attended)
        wide = keras.layers.Dense(128, activation="relu")(x)
        x = keras.layers.LayerNormalization()(x + keras.layers.Dense(64)(wide))
    pooled = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(given, keras.layers.Dense(10)(pooled))


# Name -> how to build it, shape of a sample, batch size.
CASES: Mapping[str, tuple[Callable[[], Any], tuple[int, ...], int]] = {
    "CNN, batch 32": (build_cnn, (28, 28, 1), 32),
    "MLP, batch 32": (build_mlp, (784,), 32),
    "transformer, batch 16": (build_transformer, (32, 64), 16),
}
NUM_STEPS = 64


def make_dataset(shape: tuple[int, ...], batch: int, dtype: str) -> Any:
    """As many batches of random samples as an epoch has steps."""
    random = np.random.default_rng(0)
    x = random.standard_normal((NUM_STEPS * batch, *shape), dtype=np.float32)
    y = random.integers(0, 10, NUM_STEPS * batch).astype(np.int32)
    samples = tf.data.Dataset.from_tensor_slices((x.astype(dtype), y))
    return samples.batch(batch, drop_remainder=True)


def compile_model(model: Any) -> None:
    """The same training for both."""
    model.compile(
        optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        steps_per_execution=NUM_STEPS,
    )


def make_runs(
    build: Callable[[], Any], shape: tuple[int, ...], batch: int, is_half: bool
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """One epoch of stock Keras and one under IPUStrategy."""
    own_type = "float16" if is_half else "float32"
    dataset = make_dataset(shape, batch, "float32")
    own_dataset = make_dataset(shape, batch, own_type)
    stock = build()
    compile_model(stock)
    strategy = ipu.ipu_strategy.IPUStrategy()
    with strategy.scope():
        keras.backend.set_floatx(own_type)
        model = build()
        compile_model(model)
        keras.backend.set_floatx("float32")
    model.set_weights(stock.get_weights())

    def fit_under_strategy() -> Any:
        with strategy.scope():
            return model.fit(own_dataset, epochs=1, verbose=0)

    return lambda: stock.fit(dataset, epochs=1, verbose=0), fit_under_strategy


def seconds(run: Callable[[], Any]) -> np.ndarray:
    """How long a call takes, and how long processors work for it."""
    start = np.array([time.perf_counter(), time.process_time()])
    run()
    return np.array([time.perf_counter(), time.process_time()]) - start


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--half", action="store_true")
    arguments = parser.parse_args()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    heads = ("model", "stock", "IPUStrategy", "ratio", "processor")
    print("{:24}{:>12}{:>14}{:>8}{:>12}   first fit".format(*heads))
    for name, case in CASES.items():
        if arguments.only.lower() not in name.lower():
            continue
        stock, under_strategy = make_runs(*case, arguments.half)
        first = [seconds(run)[0] for run in (stock, under_strategy)]
        rounds = range(arguments.rounds)
        times = np.array([[seconds(stock), seconds(under_strategy)] for _ in rounds])
        ratio, of_processors = np.median(times[:, 0] / times[:, 1], axis=0)
        rates = NUM_STEPS / times[:, :, 0].min(axis=0)
        print(
            f"{name:24}{rates[0]:8.1f}/s  {rates[1]:10.1f}/s  {ratio:7.2f}"
            f"{of_processors:12.2f}   {first[0]:.2f} s, {first[1]:.2f} s"
        )


if __name__ == "__main__":
    main()
