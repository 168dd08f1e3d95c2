"""Cases and data for tests of automatic loss scaling, in this package and elsewhere.

In: nothing. Out: `generate_test_cases`, one case for each optimiser, setting, capturing
layer and number of accumulated steps; a layer, a batch, and targets that do or do not
make gradients overflow in half precision.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import tensorflow as tf
from tf_keras.src import layers
from tf_keras.src.optimizers.legacy import adam, gradient_descent

from ..layers import CaptureActivationGradients, CaptureUpstreamGradients

__all__ = [
    "BATCH_SIZE",
    "DATA",
    "NUM_BATCHES",
    "TARGETS",
    "TARGETS_HUGE",
    "dense_fn",
    "generate_test_cases",
    "get_grads_and_vars",
]

NUM_BATCHES = 4
BATCH_SIZE = 64
_NUM_SAMPLES = NUM_BATCHES * BATCH_SIZE
_NUM_UNITS = 128
_HALF = np.finfo(np.float16)

DATA = np.ones((_NUM_SAMPLES, 4), np.float32)
TARGETS = np.full((_NUM_SAMPLES, _NUM_UNITS), 2.0, np.float32)
TARGETS_HUGE = TARGETS * _HALF.max * 10

_OPTIMIZERS = {"Adam": adam.Adam, "GradientDescent": gradient_descent.SGD}
_FIRST_AND_INCREASE = ((8, 2), (16, 4), (32, 8), (32, 16))
_WRAPPERS = (None, CaptureUpstreamGradients, CaptureActivationGradients)


def dense_fn(
    dtype: Any, wrapper_type: Any = None, n: int = _NUM_UNITS, init: float = 1.0
) -> Any:
    """A dense layer with constant weights, inside a capturing layer if wanted."""
    layer = layers.Dense(
        n,
        activation="relu",
        dtype=dtype,
        kernel_initializer=tf.keras.initializers.Constant(init),
    )
    return layer if wrapper_type is None else wrapper_type(layer)


def generate_test_cases(no_ga: bool = False) -> list[dict[str, Any]]:
    """Named cases, as `parameterized.named_parameters` takes them."""
    steps = (1,) if no_ga else (1, 2)
    combined = itertools.product(_OPTIMIZERS, _FIRST_AND_INCREASE, _WRAPPERS, steps)
    return [_case(number, *each) for number, each in enumerate(combined)]


def _case(
    number: int, optimizer: str, factors: tuple[int, int], wrapper: Any, steps: int
) -> dict[str, Any]:
    first, increase = factors
    wrapped = "no_wrapper" if wrapper is None else wrapper.__name__
    return {
        "testcase_name": f"{optimizer}TestCase{number}_{wrapped}_GA{steps}",
        "optimizer_type": _OPTIMIZERS[optimizer],
        "optimizer_args": [0.01],
        "optimizer_kwargs": {},
        "als_kwargs": {
            "initial_loss_scaling_factor": first,
            "update_frequency": 2,
            "increase_factor": increase,
            "histogram_bin_edge": float(_HALF.max - 2 * _HALF.eps),
        },
        "wrapper_type": wrapper,
        "ga_steps_per_replica": steps,
    }


def get_grads_and_vars(
    ga_steps_per_replica: int, variables: Any, opt_wrapper: Any, loss: Any
) -> list[tuple[Any, Any]]:
    """Gradients of the scaled loss with their variables."""
    del ga_steps_per_replica
    gradients = opt_wrapper.get_gradients(loss, variables)
    return list(zip(gradients, variables, strict=True))
