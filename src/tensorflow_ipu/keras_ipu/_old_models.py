"""The models of older releases: `ipu.keras.Model` and its companions.

They were classes of their own, told in their constructors how to accumulate gradients
or to pipeline, and in `fit` how many steps to run at a time. Here they are Keras models
with the options of today set.

`layer_replacement` is accepted and changes nothing: it put faster layers of equal
values in the place of Keras's, and here Keras's own run at the speed of TensorFlow.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ipu.ops.pipelining_ops import PipelineSchedule
from tf_keras.src.engine import sequential, training

from tensorflow_ipu._types import Tensors

__all__ = ["Model", "PipelineModel", "PipelineSequential", "Sequential"]


class _StepsPerRun:
    """`fit`, `evaluate` and `predict` with the number of steps to run at a time.

    Without it all steps of the data run at once.
    """

    def fit(
        self,
        x: Tensors | tf.data.Dataset | None = None,
        *args: Any,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> tf.keras.callbacks.History:
        """Train the model."""
        _set_run(
            self, steps_per_run or kwargs.get("steps_per_epoch"), prefetch_depth, x
        )
        return super().fit(x, *args, **kwargs)

    def evaluate(
        self,
        x: Tensors | tf.data.Dataset | None = None,
        *args: Any,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> list[float] | float | dict[str, float]:
        """Loss and metrics of the model."""
        _set_run(self, steps_per_run or kwargs.get("steps"), prefetch_depth, x)
        return super().evaluate(x, *args, **kwargs)

    def predict(
        self,
        x: Tensors | tf.data.Dataset,
        *args: Any,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> Tensors:
        """Predictions of the model."""
        _set_run(self, steps_per_run or kwargs.get("steps"), prefetch_depth, x)
        return super().predict(x, *args, **kwargs)


class Model(_StepsPerRun, training.Model):
    """A model of inputs and outputs that may accumulate gradients."""

    def __init__(
        self,
        *args: Any,
        gradient_accumulation_count: int = 1,
        accumulation_count: int | None = None,
        layer_replacement: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        _accumulate(self, accumulation_count or gradient_accumulation_count)


class Sequential(_StepsPerRun, sequential.Sequential):
    """A sequence of layers that may accumulate gradients."""

    def __init__(
        self,
        layers: Any = None,
        gradient_accumulation_count: int = 1,
        accumulation_count: int | None = None,
        layer_replacement: bool = False,
        name: str | None = None,
    ) -> None:
        keras: Any = super()
        keras.__init__(layers, name)
        _accumulate(self, accumulation_count or gradient_accumulation_count)


class PipelineModel(_StepsPerRun, training.Model):
    """A model of inputs and outputs whose layers are in `PipelineStage` scopes."""

    def __init__(
        self,
        *args: Any,
        gradient_accumulation_count: int = 2,
        pipeline_depth: int | None = None,
        device_mapping: list[int] | None = None,
        layer_replacement: bool = False,
        **kwargs: Any,
    ) -> None:
        own = {"inputs", "outputs", "name", "trainable"}
        given = {name: kwargs.pop(name) for name in list(kwargs) if name in own}
        super().__init__(*args, **given)
        count = pipeline_depth or gradient_accumulation_count
        _pipeline(self, count, device_mapping, kwargs)


class PipelineSequential(_StepsPerRun, sequential.Sequential):
    """A sequence of stages, each a list of layers."""

    def __init__(
        self,
        layers: Sequence[Sequence[Any]],
        gradient_accumulation_count: int = 2,
        pipeline_depth: int | None = None,
        device_mapping: list[int] | None = None,
        layer_replacement: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if not all(isinstance(stage, list | tuple) for stage in layers):
            raise ValueError(
                "Every stage must be a list of layers: [[first, second], [third], ...]."
            )
        keras: Any = super()
        keras.__init__([layer for stage in layers for layer in stage], name)
        count = pipeline_depth or gradient_accumulation_count
        _pipeline(self, count, device_mapping, kwargs)
        stages = [number for number, stage in enumerate(layers) for _ in stage]
        self.set_pipeline_stage_assignment(stages)


def _accumulate(model: tf.keras.Model, count: int) -> None:
    _warn(model)
    if count > 1:
        model.set_gradient_accumulation_options(count)


def _pipeline(
    model: tf.keras.Model,
    count: int,
    device_mapping: list[int] | None,
    kwargs: dict[str, Any],
) -> None:
    _warn(model)
    serial = kwargs.pop("batch_serialization_iterations", 1)
    if serial > 1:
        _check_serialised(device_mapping, kwargs.get("pipeline_schedule"))
        kwargs["pipeline_schedule"] = PipelineSchedule.Sequential
    model.set_pipelining_options(count * serial, device_mapping, **kwargs)


def _check_serialised(device_mapping: list[int] | None, schedule: Any) -> None:
    """A batch in parts: one IPU does its stages one after another, for each part."""
    if schedule not in (None, PipelineSchedule.Sequential):
        raise NotImplementedError(
            "Batch serialization is only supported with the `Sequential` schedule."
        )
    if device_mapping is None or len(set(device_mapping)) != 1:
        raise NotImplementedError(
            "When using batch serialization, all the pipeline stages need to be mapped "
            "to a single IPU: give `device_mapping` as many zeros as there are stages."
        )


def _warn(model: tf.keras.Model) -> None:
    if not hasattr(model, "_ipu_options"):
        raise ValueError(
            f"{type(model).__name__} of ipu.keras must be made in the scope of an "
            "`IPUStrategy`."
        )
    warnings.warn(
        f"ipu.keras.{type(model).__name__} is a class of older releases: use "
        "`tf.keras` models and their `set_..._options` methods.",
        DeprecationWarning,
        stacklevel=4,
    )


def _set_run(
    model: tf.keras.Model,
    num_steps: int | None,
    prefetch_depth: int | None,
    data: Tensors | tf.data.Dataset,
) -> None:
    if num_steps is None and isinstance(data, tf.data.Dataset):
        size = int(data.cardinality())
        num_steps = size if size > 0 else None
    if num_steps is not None and model._steps_per_execution is not None:
        # Steps were counted over all replicas.
        num_steps = max(num_steps // max(model._get_num_ipus() // _shards(model), 1), 1)
        model._steps_per_execution.assign(num_steps)
    if prefetch_depth is not None:
        model.set_infeed_queue_options(prefetch_depth=prefetch_depth)


def _shards(model: tf.keras.Model) -> int:
    return 2 ** (model._get_shard_count() - 1).bit_length()
