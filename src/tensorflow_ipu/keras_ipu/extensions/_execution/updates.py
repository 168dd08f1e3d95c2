"""From a loss to a weight update, for every kind of optimiser a model may have.

In: a loss inside a traced step, an optimiser, variables. Out: gradients, summed up over
steps where they are accumulated, and the operations that apply them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import gradient_accumulation, loops
from tensorflow.python.ipu.ops._pipeline import accumulation
from tensorflow.python.training import optimizer as training_optimizer
from tf_keras.src.mixed_precision import loss_scale_optimizer
from tf_keras.src.optimizers import optimizer_v1
from tf_keras.src.optimizers.legacy import optimizer_v2

from popple.engine.tensorflow import region
from popple.marks import ACCUMULATE
from tensorflow_ipu._types import DTypeLike, Optimizer

from ... import _tags

__all__ = [
    "KerasOptimizer",
    "accumulated",
    "apply_gradients",
    "check_minimize_is_kept",
    "compute_gradients",
    "takes_captured_gradients",
]

Reduction = gradient_accumulation.GradientAccumulationReductionMethod
GradientsAndVariables = Sequence[tuple[Any, Any]]


def compute_gradients(
    optimizer: Optimizer, loss: tf.Tensor, variables: Sequence[Any]
) -> list[tuple[Any, Any]]:
    """Gradients of `loss` as the optimiser wants them computed."""
    with _tags.phase("backward"):
        if isinstance(optimizer, optimizer_v1.TFOptimizer):
            return list(optimizer.get_grads(loss, list(variables)))
        if hasattr(optimizer, "get_gradients"):
            gradients = optimizer.get_gradients(loss, list(variables))
        else:
            gradients = tf.gradients(loss, list(variables))
    return list(zip(gradients, variables, strict=True))


def apply_gradients(
    optimizer: Optimizer,
    gradients_and_variables: GradientsAndVariables,
    captured: dict[str, Any] | None = None,
) -> tf.Operation | None:
    """Update the variables."""
    with _tags.phase("update"):
        if captured and takes_captured_gradients(optimizer):
            return optimizer.apply_gradients(
                gradients_and_variables, captured_grads=captured
            )
        return optimizer.apply_gradients(gradients_and_variables)


def takes_captured_gradients(optimizer: Optimizer) -> bool:
    """Whether the optimiser looks at gradients that layers captured."""
    said = getattr(optimizer, "supports_captured_grads", None)
    if said is not None:
        return bool(said)
    parameters = inspect.signature(optimizer.apply_gradients).parameters
    return "captured_grads" in parameters


def check_minimize_is_kept(optimizer: Optimizer) -> None:
    """Refuse an optimiser with a `minimize` of its own: nothing would call it."""
    if isinstance(optimizer, loss_scale_optimizer.LossScaleOptimizer):
        optimizer = optimizer.inner_optimizer
    if not isinstance(optimizer, optimizer_v2.OptimizerV2):
        return
    if type(optimizer).minimize is not optimizer_v2.OptimizerV2.minimize:
        raise ValueError(
            "An optimizer of a model that accumulates gradients or is a pipeline must "
            "not override OptimizerV2.minimize. Change `get_gradients` or "
            "`apply_gradients` instead."
        )


def accumulated(
    step: Callable[[], Sequence[Any]],
    variables: Sequence[Any],
    num_steps: int,
    method: Reduction,
    dtype: DTypeLike | None = None,
) -> list[tuple[Any, Any]]:
    """Run `step` so many times; its gradients reduced, for one update.

    A variable without a gradient in the steps has none in the result.
    """
    present: list[bool] = []

    def add_step(index: tf.Tensor, *sums: Any) -> list[Any]:
        gradients = list(step())
        present[:] = [gradient is not None for gradient in gradients]
        of_sum, of_new = accumulation.scales(method, index, num_steps)
        added = [
            total if new is None else _added(total, of_sum, new, of_new)
            for total, new in zip(sums, gradients, strict=True)
        ]
        return [index + 1, *added]

    # Sums that start from zero in every update, on the device.
    zeros = [
        tf.zeros(variable.shape, accumulation.accumulator_dtype(variable, dtype))
        for variable in variables
    ]
    _, *sums = loops.repeat(num_steps, add_step, [tf.constant(0), *zeros])
    return [
        (tf.cast(total, variable.dtype) if there else None, variable)
        for total, variable, there in zip(sums, variables, present, strict=True)
    ]


def _added(total: tf.Tensor, of_sum: Any, new: Any, of_new: Any) -> tf.Tensor:
    addend = accumulation.contribution(new, of_new, total.dtype)
    with region(ACCUMULATE):
        return accumulation.scaled(total, of_sum) + addend


class KerasOptimizer(training_optimizer.Optimizer):
    """An optimiser of Keras as TensorFlow's own pipelines want it."""

    def __init__(
        self, optimizer: Optimizer, variables: Callable[[], Sequence[Any]]
    ) -> None:
        super().__init__(use_locking=False, name="keras_optimizer")
        self._optimizer = optimizer
        self._variables = variables

    @property
    def supports_captured_grads(self) -> bool:
        """Whether `apply_gradients` makes use of captured gradients."""
        return takes_captured_gradients(self._optimizer)

    def compute_gradients(
        self,
        loss: tf.Tensor,
        var_list: Sequence[tf.Variable] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> list[tuple[Any, Any]]:
        """Gradients for the model's weights."""
        return compute_gradients(self._optimizer, loss, self._variables())

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        captured_grads: dict[str, Any] | None = None,
        global_step: tf.Variable | None = None,
        name: str | None = None,
    ) -> tf.Operation | None:
        """Update the model's weights."""
        return apply_gradients(self._optimizer, list(grads_and_vars), captured_grads)
