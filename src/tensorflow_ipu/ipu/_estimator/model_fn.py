"""What a `model_fn` returns: the tensors and operations of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import TensorLike, Tensors

from .mode_keys import ModeKeys

__all__ = ["LOSS_METRIC_KEY", "EstimatorSpec", "ModeKeys"]

LOSS_METRIC_KEY = "loss"
AVERAGE_LOSS_METRIC_KEY = "average_loss"

_MODES = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)


class _Fields(NamedTuple):
    """The fields of an :class:`EstimatorSpec`, in their order."""

    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Mapping[str, Any]
    export_outputs: Any
    training_chief_hooks: tuple[Any, ...]
    training_hooks: tuple[Any, ...]
    scaffold: Any
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


class EstimatorSpec(_Fields):
    """A model for one mode, checked for what that mode needs."""

    def __new__(
        cls,
        mode: str,
        predictions: Tensors | None = None,
        loss: TensorLike | None = None,
        train_op: tf.Tensor | tf.Operation | None = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Any = None,
        training_chief_hooks: Sequence[Any] | None = None,
        training_hooks: Sequence[Any] | None = None,
        scaffold: Any = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        return super().__new__(
            cls,
            mode=checked_mode(mode),
            predictions=checked_predictions(predictions, mode),
            loss=checked_loss(loss, mode),
            train_op=checked_train_op(train_op, mode),
            eval_metric_ops=checked_metrics(eval_metric_ops),
            export_outputs=export_outputs,
            training_chief_hooks=checked_hooks(training_chief_hooks),
            training_hooks=checked_hooks(training_hooks),
            scaffold=scaffold or tf.compat.v1.train.Scaffold(),
            evaluation_hooks=checked_hooks(evaluation_hooks),
            prediction_hooks=checked_hooks(prediction_hooks),
        )


def checked_mode(mode: str) -> str:
    """The mode, if it is one."""
    if mode not in _MODES:
        raise ValueError(f"Mode not recognized: {mode}. Use one of {_MODES}.")
    return mode


def checked_train_op(
    train_op: tf.Tensor | tf.Operation | None, mode: str
) -> tf.Tensor | tf.Operation | None:
    """The operation that trains, which training needs."""
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        return None
    return checked_tensor_or_operation(train_op, "train_op")


def checked_loss(loss: TensorLike | None, mode: str) -> tf.Tensor | None:
    """The loss as a scalar; only predictions do without it."""
    if loss is None:
        if mode != ModeKeys.PREDICT:
            raise ValueError("Missing loss.")
        return None
    loss = checked_tensor(loss, "loss")
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar, given: {loss}")
    return loss if loss.shape.rank == 0 else tf.reshape(loss, [])


def checked_predictions(predictions: Tensors | None, mode: str) -> Tensors | None:
    """A tensor or a dictionary of tensors, which prediction needs."""
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        return {}
    values = predictions.values() if isinstance(predictions, dict) else [predictions]
    for value in values:
        checked_tensor(value, "predictions")
    return predictions


def checked_metrics(metrics: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Metrics by name, each a pair of a value and the operation that updates it."""
    if not isinstance(metrics or {}, Mapping):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
    for name, metric in (metrics or {}).items():
        if not isinstance(metric, tuple) or len(metric) != 2:
            raise TypeError(
                "Values of eval_metric_ops must be (metric_value, update_op) tuples,"
                f" given: {metric} for key: {name}"
            )
        for part in metric:
            checked_tensor_or_operation(part, f"eval_metric_ops[{name!r}]")
    return metrics or {}


def checked_hooks(hooks: Sequence[Any] | None) -> tuple[Any, ...]:
    """Session hooks, as a tuple."""
    for hook in hooks or ():
        if not isinstance(hook, tf.compat.v1.train.SessionRunHook):
            raise TypeError(
                f"All hooks must be SessionRunHook instances, given: {hook}"
            )
    return tuple(hooks or ())


def checked_tensor(value: Any, name: str) -> tf.Tensor:
    """A tensor, or what is read as one."""
    if not tf.is_tensor(value):
        raise TypeError(f"{name} must be Tensor, given: {value}")
    return value


def checked_tensor_or_operation(value: Any, name: str) -> tf.Tensor | tf.Operation:
    """A tensor or an operation."""
    if not isinstance(value, tf.Operation) and not tf.is_tensor(value):
        raise TypeError(f"{name} must be Operation or Tensor, given: {value}")
    return value


def call_with(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call a user's function with those of the arguments that it takes."""
    names = argument_names(function)
    return function(**{name: given[name] for name in names if name in given})


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments of a user's function."""
    from tensorflow.python.util import function_utils

    return function_utils.fn_args(function)


def call_model_fn(
    model_fn: Callable[..., Any],
    features: Tensors,
    labels: Tensors | None,
    given: Mapping[str, Any],
) -> Any:
    """Call a `model_fn`, which need not take labels where there are none."""
    if labels is not None and "labels" not in argument_names(model_fn):
        raise ValueError(
            "model_fn does not take labels, and the data set has some. Give it a"
            " `labels` argument, or leave them out of the data set."
        )
    return call_with(model_fn, {**given, "features": features, "labels": labels})
