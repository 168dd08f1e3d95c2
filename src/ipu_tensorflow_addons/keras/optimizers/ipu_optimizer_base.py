"""What the optimisers share: types of state and arithmetic, outlined updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import tensorflow.compat.v2 as tf
from tensorflow.compat.v2 import keras
from tensorflow.python import ipu

from tensorflow_ipu._types import DTypeLike, UpdateState

# Of the optimisers of Keras 2.6, whose attributes checkers do not know.
LEGACY: Any = keras.optimizers.legacy


class IpuOptimizerBase(LEGACY.Optimizer):
    """An optimiser that computes in `optimizer_compute_precisions`.

    With `outline_apply_gradients` all updates of one shape share their code.
    """

    def __init__(
        self,
        name: str,
        optimizer_compute_precisions: Sequence[Any] = (tf.float32,),
        outline_apply_gradients: bool = False,
        outline_apply_gradients_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self.opt_dtypes = tuple(map(tf.as_dtype, optimizer_compute_precisions))
        self.outline_apply_gradients = outline_apply_gradients
        self.outline_apply_gradients_kwargs = outline_apply_gradients_kwargs or {}

    def _add_state(self, var: tf.Variable, name: str, dtype: DTypeLike) -> tf.Variable:
        """State of a variable, zeros at first; of the variable's type if not given."""
        if dtype is None or tf.as_dtype(dtype) == var.dtype.base_dtype:
            return self.add_slot(var, name)
        slots = self._slots.setdefault(var._unique_id, {})
        if name not in slots:
            with tf.init_scope():
                title = f"{var._shared_name}/{name}"
                value = tf.zeros(var.shape, dtype)
                state = tf.Variable(value, trainable=False, name=title)
            slots[name] = state
            self._restore_slot_variable(name, var, state)
            self._weights.append(state)
        return slots[name]

    def _update(self, function: Callable[..., Any], *tensors: Any) -> Any:
        """`function` of tensors, outlined if that is wanted."""
        values = [tf.convert_to_tensor(tensor) for tensor in tensors]
        if self.outline_apply_gradients:
            options = self.outline_apply_gradients_kwargs
            function = ipu.outlined_function(function, **options)
        return function(*values)

    def _resource_apply_sparse(
        self,
        grad: tf.Tensor,
        var: tf.Variable,
        indices: tf.Tensor,
        apply_state: UpdateState | None = None,
    ) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__} takes no sparse gradients: look embeddings up with"
            " ipu.embedding_ops.embedding_lookup, whose gradients are dense."
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "optimizer_compute_precisions": [dtype.name for dtype in self.opt_dtypes],
            "outline_apply_gradients": self.outline_apply_gradients,
            "outline_apply_gradients_kwargs": self.outline_apply_gradients_kwargs,
        }


class Moments(NamedTuple):
    """Two moments of a gradient: as they are kept, and corrected for their start."""

    first: Any
    second: Any
    first_corrected: Any
    second_corrected: Any


def next_moments(
    grad: tf.Tensor, kept: tuple[Any, Any], betas: tuple[Any, Any], step: tf.Tensor
) -> Moments:
    """The moments after one more gradient; uncorrected where there is no `step`."""
    first = betas[0] * kept[0] + (1.0 - betas[0]) * grad
    second = betas[1] * kept[1] + (1.0 - betas[1]) * tf.square(grad)
    if step is None:
        return Moments(first, second, first, second)
    corrected = [
        moment / (1.0 - tf.pow(beta, step))
        for moment, beta in ((first, betas[0]), (second, betas[1]))
    ]
    return Moments(first, second, *corrected)


def type_name(dtype: DTypeLike) -> str | None:
    """A type as it is written in configurations."""
    return None if dtype is None else tf.as_dtype(dtype).name
