"""The models of older releases: `ipu.keras.Model` and its companions.

They were classes of their own (SDK 1.2 to 2.1), told in their constructors how to
accumulate gradients or to pipeline. Here they are Keras models with the options of
today set, which count as they did: see `_old_steps`.

`layer_replacement` is accepted and changes nothing: it put faster layers of equal
values in the place of Keras's, and here Keras's own run at the speed of TensorFlow.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import keras_extensions
from tensorflow.python.ipu.ops.pipelining_ops import PipelineSchedule
from tf_keras.src.engine import sequential, training

from tensorflow_ipu._types import Callbacks, Data, DTypeLike, ShapeLike, Tensors

from ._old_steps import Epoch, Shape, as_dataset, epoch_of, in_pairs
from .extensions._extension import KerasExtension

__all__ = ["Model", "PipelineModel", "PipelineSequential", "Sequential"]


class _OldModel:
    """`fit`, `evaluate` and `predict` as they were: steps are weight updates.

    `steps_per_run` of them run at a time, by default all of an epoch. The model may be
    made anywhere; it runs on the IPUs of the strategy in whose scope it is compiled or
    used.
    """

    _old_accumulation: int = 1

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Say how the model is trained; the arguments are those of Keras."""
        _follow_strategy(self)
        super().compile(*args, **kwargs)

    def fit(
        self,
        x: Data = None,
        y: Data = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = 1,
        callbacks: Callbacks = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> tf.keras.callbacks.History:
        """Train the model. `shuffle` has no effect: a data set shuffles itself."""
        epoch = self._epoch(x, y, batch_size, steps_per_epoch, steps_per_run, True)
        _set_feeds(self, prefetch_depth, kwargs)
        return super().fit(
            epoch.data,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            initial_epoch=initial_epoch,
            steps_per_epoch=epoch.num_batches,
            **kwargs,
        )

    def evaluate(
        self,
        x: Data = None,
        y: Data = None,
        batch_size: int | None = None,
        verbose: int | str = 1,
        steps: int | None = None,
        callbacks: Callbacks = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> list[float] | dict[str, float]:
        """Loss and metrics of the model, as a list."""
        epoch = self._epoch(x, y, batch_size, steps, steps_per_run, True)
        _set_feeds(self, prefetch_depth, kwargs)
        found = super().evaluate(
            epoch.data,
            verbose=verbose,
            callbacks=callbacks,
            steps=epoch.num_batches,
            **kwargs,
        )
        return found if isinstance(found, list | dict) else [found]

    def predict(
        self,
        x: Data,
        batch_size: int | None = None,
        verbose: int | str = 0,
        steps: int | None = None,
        callbacks: Callbacks = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> Tensors:
        """Predictions of the model for data that are inputs only."""
        epoch = self._epoch(x, None, batch_size, steps, steps_per_run, False)
        _set_feeds(self, prefetch_depth, kwargs)
        return super().predict(
            epoch.data,
            verbose=verbose,
            callbacks=callbacks,
            steps=epoch.num_batches,
            **kwargs,
        )

    def _epoch(
        self,
        x: Data,
        y: Data,
        batch_size: int | None,
        steps: int | None,
        steps_per_run: int | None,
        has_targets: bool,
    ) -> Epoch:
        """The data of an epoch; also sets how many batches run at a time."""
        _follow_strategy(self)
        if not _is_for_ipu(self.distribute_strategy):
            raise ValueError(
                f"{type(self).__name__} can only be used on an IPU device: call its "
                "methods in the scope of an `IPUStrategy`."
            )
        data = as_dataset(x, y, batch_size)
        num_inputs, num_outputs = self._num_tensors()
        data = in_pairs(data, num_inputs, num_outputs if has_targets else 0)
        shape = Shape(self._old_accumulation, self._get_replication_factor())
        is_array = not isinstance(x, tf.data.Dataset)
        epoch = epoch_of(data, shape, steps, steps_per_run, is_array)
        at_a_time = epoch.batches_at_a_time
        self._steps_per_execution.assign(at_a_time)
        return epoch

    def _num_tensors(self) -> tuple[int, int]:
        """Inputs and outputs: a sequence of layers has one each."""
        return 1, 1


class _OldFunctional(_OldModel):
    """A model of inputs and outputs."""

    def build(self, input_shape: ShapeLike | None = None) -> None:
        """Nothing: the layers were built when they were called."""

    def _num_tensors(self) -> tuple[int, int]:
        return len(self.inputs), len(self.outputs)


class _OldSequence(_OldModel):
    """A sequence of layers."""

    @property
    def model_layers(self) -> list[Any]:
        """The layers."""
        return self.layers

    def build(self, input_shape: ShapeLike | None = None) -> None:
        """Build one layer after the other, for inputs of this shape."""
        # Keras would trace all of them into a graph of its own, and their variables.
        shape: Any = input_shape
        for layer in self.layers:
            if not layer.built:
                with tf.name_scope(layer.name):
                    layer.build(shape)
                layer.built = True
            shape = layer.compute_output_shape(shape)
        self.built = True


class Model(_OldFunctional, training.Model):
    """A model of inputs and outputs that may accumulate gradients."""

    def __init__(
        self,
        *args: Any,
        gradient_accumulation_count: int = 1,
        gradient_accumulation_dtype: DTypeLike | None = None,
        layer_replacement: bool = False,
        accumulation_count: int = 1,
        accumulation_dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        _check_functional(self)
        _accumulate(
            self,
            _either(gradient_accumulation_count, accumulation_count, 1),
            _either(gradient_accumulation_dtype, accumulation_dtype, None),
        )


class Sequential(_OldSequence, sequential.Sequential):
    """A sequence of layers that may accumulate gradients."""

    def __init__(
        self,
        layers: Any = None,
        gradient_accumulation_count: int = 1,
        gradient_accumulation_dtype: DTypeLike | None = None,
        layer_replacement: bool = False,
        accumulation_count: int = 1,
        accumulation_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        keras: Any = super()
        keras.__init__(layers, name)
        _accumulate(
            self,
            _either(gradient_accumulation_count, accumulation_count, 1),
            _either(gradient_accumulation_dtype, accumulation_dtype, None),
        )


class PipelineModel(_OldFunctional, training.Model):
    """A model of inputs and outputs whose layers are in `PipelineStage` scopes."""

    def __init__(
        self,
        *args: Any,
        gradient_accumulation_count: int | None = None,
        pipeline_depth: int | None = None,
        device_mapping: list[int] | None = None,
        layer_replacement: bool = False,
        **kwargs: Any,
    ) -> None:
        own = {"inputs", "outputs", "name", "trainable"}
        given = {name: kwargs.pop(name) for name in list(kwargs) if name in own}
        super().__init__(*args, **given)
        _check_functional(self)
        count = _either(gradient_accumulation_count, pipeline_depth, None)
        _pipeline(self, count, device_mapping, kwargs)


class PipelineSequential(_OldSequence, sequential.Sequential):
    """A sequence of stages, each a list of layers."""

    def __init__(
        self,
        stages: Sequence[Sequence[Any]] | None = None,
        gradient_accumulation_count: int | None = None,
        pipeline_depth: int | None = None,
        device_mapping: list[int] | None = None,
        layer_replacement: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        stages = kwargs.pop("layers", stages)
        if not stages or not all(isinstance(stage, list | tuple) for stage in stages):
            raise ValueError(
                "Every stage must be a list of layers: [[first, second], [third], ...]."
            )
        keras: Any = super()
        keras.__init__([layer for stage in stages for layer in stage], name)
        count = _either(gradient_accumulation_count, pipeline_depth, None)
        _pipeline(self, count, device_mapping, kwargs)
        places = [number for number, stage in enumerate(stages) for _ in stage]
        self.set_pipeline_stage_assignment(places)


def _either(new: Any, former: Any, default: Any) -> Any:
    """An argument under its last or its former name; not both."""
    if new != default and former != default:
        raise ValueError(
            f"An argument is given under its former name too: {new} and {former}."
        )
    return former if new == default else new


def _check_functional(model: tf.keras.Model) -> None:
    if not getattr(model, "_is_graph_network", False):
        raise ValueError(
            f"ipu.keras.{type(model).__name__} takes `inputs` and `outputs`; it is not "
            "for subclasses with a `call` of their own."
        )


def _accumulate(model: tf.keras.Model, count: int, dtype: DTypeLike | None) -> None:
    _extend(model)
    _warn(model)
    model._old_accumulation = count
    if count > 1:
        types = {} if dtype is None else {"dtype": dtype}
        model.set_gradient_accumulation_options(count, **types)


def _pipeline(
    model: tf.keras.Model,
    count: int | None,
    device_mapping: list[int] | None,
    kwargs: dict[str, Any],
) -> None:
    _extend(model)
    _warn(model)
    if count is None:
        raise ValueError("A pipeline needs a `gradient_accumulation_count`.")
    serial = kwargs.pop("batch_serialization_iterations", 1)
    if serial > 1:
        _check_serialised(device_mapping, kwargs.get("pipeline_schedule"))
        kwargs["pipeline_schedule"] = PipelineSchedule.Sequential
    model._old_accumulation = count * serial
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


def _extend(model: tf.keras.Model) -> None:
    """Give a model its IPU methods, wherever it is made."""
    if isinstance(model, KerasExtension):
        return
    for (kind, _), extension in keras_extensions._extensions_manager:
        if isinstance(model, kind):
            KerasExtension.extend(model, kind, extension)
            return


def _follow_strategy(model: tf.keras.Model) -> None:
    """Let a model run under the strategy in whose scope it is used."""
    strategy = tf.distribute.get_strategy()
    if _is_for_ipu(strategy):
        model._distribution_strategy = strategy


def _is_for_ipu(strategy: tf.distribute.Strategy) -> bool:
    return hasattr(strategy, "_patch_keras_extension")


def _warn(model: tf.keras.Model) -> None:
    warnings.warn(
        f"ipu.keras.{type(model).__name__} is a class of older releases: use "
        "`tf.keras` models and their `set_..._options` methods.",
        DeprecationWarning,
        stacklevel=4,
    )


def _set_feeds(
    model: tf.keras.Model, prefetch_depth: int | None, kwargs: dict[str, Any]
) -> None:
    """Take options of feeds out of what a method was given."""
    if prefetch_depth is not None:
        model.set_infeed_queue_options(prefetch_depth=prefetch_depth)
    accumulate = kwargs.pop("accumulate_outfeed", None)
    dtype = kwargs.pop("accumulate_outfeed_dtype", None)
    if accumulate is not None:
        options = model._ipu_options
        more = {**options.pipelining_kwargs, "accumulate_outfeed_dtype": dtype}
        model._ipu_options = replace(
            options, pipelining_accumulate_outfeed=accumulate, pipelining_kwargs=more
        )
