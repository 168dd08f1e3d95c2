"""Estimators whose models run on the IPU, several steps at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow_ipu._types import Infeed, Tensors

from . import ipu_run_config
from ._estimator import model_fn as specs
from ._estimator.ipu_base import IPUEstimatorBase as _IPUEstimatorBase
from ._estimator.ipu_loops import Loops
from ._estimator.mode_keys import ModeKeys

__all__ = ["IPUEstimator", "IPUEstimatorSpec"]


class _Fields(NamedTuple):
    """The fields of an :class:`IPUEstimatorSpec`, in their order."""

    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Mapping[str, Any]
    eval_metrics: tuple[Callable[..., Any], Any] | None
    host_call: tuple[Callable[..., Any], list[Any]] | None
    training_hooks: tuple[Any, ...]
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


class IPUEstimatorSpec(_Fields):
    """A model for one mode, parts of which may run on the host.

    `eval_metrics` is a function that makes metrics on the host and the tensors it is
    given, as a list or by name; `eval_metric_ops` are updated on the device instead.
    `host_call` is a function run on the host after every training step, and the tensors
    it is given.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Tensors | None = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        eval_metrics: Any = None,
        host_call: Any = None,
        training_hooks: Sequence[Any] | None = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
    ) -> IPUEstimatorSpec:
        _check_call(host_call, "host_call", list)
        _check_call(eval_metrics, "eval_metrics", list, dict)
        return super().__new__(
            cls,
            mode=specs.checked_mode(mode),
            predictions=specs.checked_predictions(predictions, mode),
            loss=specs.checked_loss(loss, mode),
            train_op=specs.checked_train_op(train_op, mode),
            eval_metric_ops=specs.checked_metrics(eval_metric_ops),
            eval_metrics=eval_metrics,
            host_call=host_call,
            training_hooks=specs.checked_hooks(training_hooks),
            evaluation_hooks=specs.checked_hooks(evaluation_hooks),
            prediction_hooks=specs.checked_hooks(prediction_hooks),
        )


class IPUEstimator(_IPUEstimatorBase):
    """Trains, evaluates and uses a model on the IPU.

    Each run of the session is a loop of `iterations_per_loop` steps on the device, so
    the global step, hooks and summaries see every so many steps. The batch sizes given
    here are those of all replicas together; `params["batch_size"]` is that of one.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: ipu_run_config.RunConfig | None = None,
        params: dict[str, Any] | None = None,
        warm_start_from: Any = None,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
    ) -> None:
        batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        super().__init__(
            model_fn, model_dir, config, params, warm_start_from, batch_sizes
        )
        _check_loops(self.config)

    def _program(self, mode: str, infeed: Infeed) -> Loops:
        return Loops(self._call_model_fn, mode, self.config.ipu_run_config, infeed)

    def _call_model_fn(
        self, features: Tensors, labels: Tensors | None, mode: str
    ) -> IPUEstimatorSpec | specs.EstimatorSpec:
        spec = specs.call_model_fn(
            self._model_fn, features, labels, self._arguments(mode)
        )
        if not isinstance(spec, IPUEstimatorSpec | specs.EstimatorSpec):
            raise ValueError("`model_fn` must return IPUEstimatorSpec or EstimatorSpec")
        return spec


def _check_call(call: Any, name: str, *kinds: type) -> None:
    """Refuse what is no pair of a function and the tensors to call it with."""
    if call is None:
        return
    if not isinstance(call, tuple):
        raise TypeError(f"`{name}` must be a tuple")
    if len(call) != 2:
        raise ValueError(f"`{name}` must have two elements")
    if not callable(call[0]):
        raise TypeError(f"first element in `{name}` must be callable")
    if not isinstance(call[1], kinds):
        allowed = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"second element in `{name}` must be a {allowed}")


def _check_loops(config: ipu_run_config.RunConfig) -> None:
    iterations = config.ipu_run_config.iterations_per_loop
    if iterations > 1 and (config.train_distribute or config.eval_distribute):
        raise NotImplementedError(
            f"iterations_per_loop > 1 (got {iterations}) not supported with"
            " distribution"
        )
