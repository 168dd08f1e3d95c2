"""Estimators whose models are pipelines over several IPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tensorflow_ipu._former_arguments import with_former
from tensorflow_ipu._types import Infeed, Returned

from . import ipu_outfeed_queue, ipu_run_config, loops
from ._config import age
from ._estimator import model_fn as specs
from ._estimator.ipu_base import IPUEstimatorBase
from ._estimator.mode_keys import ModeKeys
from .gradient_accumulation import GradientAccumulationReductionMethod
from .ops import pipelining_ops

__all__ = ["IPUPipelineEstimator", "IPUPipelineEstimatorSpec"]

_SUM = GradientAccumulationReductionMethod.SUM


class _Fields(NamedTuple):
    """The fields of an :class:`IPUPipelineEstimatorSpec`, in their order."""

    mode: str
    computational_stages: Sequence[Any]
    gradient_accumulation_count: int
    eval_metrics_fn: Callable[..., Any] | None
    optimizer_function: Callable[..., Any] | None
    device_mapping: Sequence[int] | None
    loss_accumulator_dtype: Any
    training_hooks: tuple[Any, ...]
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]
    reduction_method: Any
    pipeline_op_kwargs: Mapping[str, Any]
    counts_updates: bool


class IPUPipelineEstimatorSpec(_Fields):
    """A model in stages for one mode.

    Training needs an `optimizer_function`, evaluation an `eval_metrics_fn`: it is given
    the outputs of the last stage on the host and returns metrics, the loss among them.
    Further keywords go to `pipelining_ops.pipeline`.

    `count_gradient_accumulation_as_iterations` is what SDK 2.0 asked: False lets an
    iteration of `iterations_per_loop` be a weight update, as it was before, and not a
    batch.
    """

    @with_former(pipeline_depth="gradient_accumulation_count")
    def __new__(
        cls,
        mode: str,
        computational_stages: Sequence[Any],
        gradient_accumulation_count: int | None = None,
        eval_metrics_fn: Callable[..., Any] | None = None,
        optimizer_function: Callable[..., Any] | None = None,
        device_mapping: Sequence[int] | None = None,
        loss_accumulator_dtype: Any = None,
        training_hooks: Sequence[Any] | None = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
        reduction_method: GradientAccumulationReductionMethod | str = _SUM,
        count_gradient_accumulation_as_iterations: bool = True,
        **pipeline_op_kwargs: Any,
    ) -> IPUPipelineEstimatorSpec:
        if mode == ModeKeys.TRAIN and not optimizer_function:
            raise _missing("optimizer_function", " when training")
        if mode == ModeKeys.EVAL and not eval_metrics_fn:
            raise _missing("eval_metrics_fn", " when evaluating")
        if not gradient_accumulation_count:
            raise _missing("gradient_accumulation_count", "")
        if "accumulate_outfeed" in pipeline_op_kwargs:
            raise ValueError(
                "The `accumulate_outfeed` pipeline keyword argument cannot be passed to"
                " the `IPUPipelineEstimatorSpec`: the estimator sets it itself."
            )
        return super().__new__(
            cls,
            mode=mode,
            computational_stages=computational_stages,
            gradient_accumulation_count=gradient_accumulation_count,
            eval_metrics_fn=eval_metrics_fn,
            optimizer_function=optimizer_function,
            device_mapping=device_mapping,
            loss_accumulator_dtype=loss_accumulator_dtype,
            training_hooks=specs.checked_hooks(training_hooks),
            evaluation_hooks=specs.checked_hooks(evaluation_hooks),
            prediction_hooks=specs.checked_hooks(prediction_hooks),
            reduction_method=reduction_method,
            pipeline_op_kwargs=pipeline_op_kwargs,
            counts_updates=not count_gradient_accumulation_as_iterations,
        )


class IPUPipelineEstimator(IPUEstimatorBase):
    """Trains, evaluates and uses a model that is a pipeline.

    The `model_fn` takes no features and labels, the first stage does; it returns an
    :class:`IPUPipelineEstimatorSpec`.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: ipu_run_config.RunConfig | None = None,
        params: dict[str, Any] | None = None,
        warm_start_from: Any = None,
    ) -> None:
        super().__init__(model_fn, model_dir, config, params, warm_start_from, {})

    def _check_model_fn(self, model_fn: Callable[..., Any]) -> None:
        del model_fn  # checked when it is called, as its errors are

    def exported(self, receiver: Any, mode: str) -> specs.EstimatorSpec:
        """The stages one after another, as they are exported for prediction."""
        if mode != ModeKeys.PREDICT:
            raise NotImplementedError(
                "A pipeline is exported for prediction only: leave out"
                f" `experimental_mode`, which is {mode!r}."
            )
        self._create_global_step()
        outputs = receiver.features
        for stage in self._call_model_fn(mode).computational_stages:
            args, kwargs = loops._body_arguments(outputs)
            outputs = stage(*args, **kwargs)
        return specs.EstimatorSpec(mode, predictions=_only_prediction(outputs))

    def _program(self, mode: str, infeed: Infeed) -> _Pipeline:
        return _Pipeline(self._call_model_fn, mode, self.config.ipu_run_config, infeed)

    def _call_model_fn(self, mode: str) -> IPUPipelineEstimatorSpec:
        names = specs.argument_names(self._model_fn)
        if "features" in names or "labels" in names:
            raise ValueError(
                "The `model_fn` used with `IPUPipelineEstimator` must not have"
                " `features` or `labels` arguments: the first stage is given them."
            )
        spec = specs.call_with(self._model_fn, self._arguments(mode))
        if not isinstance(spec, IPUPipelineEstimatorSpec):
            raise TypeError(
                "The `model_fn` of a pipeline must return `IPUPipelineEstimatorSpec`,"
                f" not {type(spec).__name__}."
            )
        return spec


class _Pipeline:
    """One pipeline per run of the session."""

    def __init__(
        self,
        call_model_fn: Callable[[str], IPUPipelineEstimatorSpec],
        mode: str,
        run_config: ipu_run_config.IPURunConfig,
        infeed: Infeed,
    ) -> None:
        self._call_model_fn = call_model_fn
        self._mode = mode
        self._run_config = run_config
        self._infeed = infeed
        self._outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        self._model: Any = None

    @property
    def hooks(self) -> Sequence[Any]:
        """The model's hooks for its mode."""
        return {
            ModeKeys.TRAIN: self._model.training_hooks,
            ModeKeys.EVAL: self._model.evaluation_hooks,
            ModeKeys.PREDICT: self._model.prediction_hooks,
        }[self._mode]

    def run(self) -> tf.Operation:
        """Build the pipeline; an operation."""
        model = self._model = self._call_model_fn(self._mode)
        _check_devices(model, self._run_config.num_shards)
        iterations = self._run_config.iterations_per_loop
        count = model.gradient_accumulation_count
        training: dict[str, Any] = {}
        if self._mode == ModeKeys.TRAIN:
            training = {
                "optimizer_function": model.optimizer_function,
                "outfeed_loss": True,
                "accumulate_outfeed": True,
                "accumulate_outfeed_dtype": model.loss_accumulator_dtype,
                "reduction_method": model.reduction_method,
            }
        return pipelining_ops.pipeline(
            computational_stages=model.computational_stages,
            gradient_accumulation_count=count,
            repeat_count=(
                iterations
                if self._counts_updates(model)
                else _repeat_count(iterations, count)
            ),
            infeed_queue=self._infeed,
            outfeed_queue=self._outfeed,
            device_mapping=model.device_mapping,
            name=f"ipu_pipeline_estimator_{self._mode}",
            **training,
            **model.pipeline_op_kwargs,
        )

    def _counts_updates(self, model: IPUPipelineEstimatorSpec) -> bool:
        """Whether an iteration is a weight update: before 2.1 it was.

        A program that configures the system with the calls of that time shows its age.
        """
        options = self._run_config.ipu_options
        return model.counts_updates or age.is_of_create_ipu_config(options)

    def spec(self, outputs: Returned) -> specs.EstimatorSpec:
        """The model as the session sees it."""
        with tf.control_dependencies([outputs]):
            found: Any = self._outfeed.dequeue()
        if self._mode == ModeKeys.TRAIN:
            count = self._model.gradient_accumulation_count
            loss = tf.reduce_mean(tf.cast(found, tf.float32)) / count
            return specs.EstimatorSpec(self._mode, loss=loss, train_op=outputs)
        if self._mode == ModeKeys.EVAL:
            metrics = self._metrics(found)
            loss = tf.reduce_mean(metrics.pop(specs.LOSS_METRIC_KEY))
            return specs.EstimatorSpec(self._mode, loss=loss, eval_metric_ops=metrics)
        return specs.EstimatorSpec(self._mode, predictions=_only_prediction(found))

    def _metrics(self, found: Any) -> dict[str, Any]:
        args, kwargs = loops._body_arguments(found)
        metrics = self._model.eval_metrics_fn(*args, **kwargs)
        if not isinstance(metrics, dict):
            raise TypeError(
                "`eval_metrics_fn` must return a dict of metrics, not"
                f" {type(metrics).__name__}."
            )
        if specs.LOSS_METRIC_KEY not in metrics:
            raise KeyError(
                "What `eval_metrics_fn` returns must contain the loss, as"
                f" '{specs.LOSS_METRIC_KEY}'."
            )
        return dict(metrics)


def _missing(name: str, when: str) -> ValueError:
    return ValueError(f"`IPUPipelineEstimatorSpec` must contain `{name}`{when}")


def _check_devices(model: IPUPipelineEstimatorSpec, num_shards: int) -> None:
    """Refuse a pipeline that does not fill the IPUs, up to a power of two."""
    mapping = model.device_mapping
    stages = model.computational_stages if mapping is None else set(mapping)
    if not num_shards / 2 < len(stages) <= num_shards:
        raise ValueError(
            f"This pipeline requires {len(stages)} devices, but"
            f" `IPURunConfig.num_shards` was set to {num_shards}: it must be the same,"
            " or the next power of two."
        )


def _repeat_count(iterations: int, count: int) -> int:
    """How many weight updates make one run of the session."""
    names = f"`IPURunConfig.iterations_per_loop` (got {iterations})"
    if iterations < count:
        raise ValueError(
            f"{names} cannot be less than `gradient_accumulation_count` (got {count})"
        )
    if iterations % count:
        raise ValueError(
            f"{names} must be divisible by `gradient_accumulation_count` (got {count})"
        )
    return iterations // count


def _only_prediction(found: Any) -> tf.Tensor:
    if not isinstance(found, list | tuple):
        return found
    if len(found) != 1:
        raise ValueError(
            "The last stage must return exactly one prediction tensor, and it returns"
            f" {len(found)}."
        )
    return found[0]
