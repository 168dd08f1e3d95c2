"""The programs that run on the device: loops of training, test or prediction steps.

In: a model and a :class:`Run` that says what its program is to do. Out: a `tf.function`
of an infeed. It returns what the steps gave, or puts it into an outfeed step by step
(:attr:`Run.streams`): where the host wants every step, not only the last.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import gradient_accumulation, loops
from tensorflow.python.ipu._programs.marks import marked
from tensorflow.python.ipu.eager import backprop
from tf_keras.src.engine import data_adapter

from popple.engine.tensorflow import all_gather, weight_update
from popple.marks import OFF_CHIP
from tensorflow_ipu._translate import off_chip_words
from tensorflow_ipu._types import Function, Tensors

from ... import _tags
from .._options import ReplicatedMetricReductionMethod
from . import updates

__all__ = [
    "Mode",
    "Run",
    "make_program",
    "over_replicas",
    "reset_metrics_of_all_replicas",
]

Reduction = gradient_accumulation.GradientAccumulationReductionMethod
Emit = Callable[[Any], None]


class Mode(enum.Enum):
    """What a model is asked to do."""

    FIT = "train"
    EVALUATE = "test"
    PREDICT = "predict"


@dataclass(frozen=True)
class Run:
    """One execution: what is done, how often, by how many; and how results return.

    `num_replicas` are those of this process.
    """

    mode: Mode
    num_steps: int
    accumulation_steps: int
    num_replicas: int
    streams: bool
    num_processes: int = 1


def make_program(model: tf.keras.Model, run: Run, outfeed: Any) -> Function:
    """The program of a model that is not pipelined."""
    steps = {
        Mode.FIT: _train,
        Mode.EVALUATE: _evaluate,
        Mode.PREDICT: _predict,
    }[run.mode]

    def program(
        iterator: Iterator[Tensors], starts: tf.Tensor | None = None
    ) -> Tensors | None:
        def emit(results: Tensors) -> None:
            if run.streams:
                outfeed.enqueue(over_replicas(model, run, results))

        with _tags.tagging():
            reset_metrics_of_all_replicas(model, starts)
            results = steps(model, run, iterator, emit)
            _counter(model, run.mode).assign_add(run.num_steps)
        if run.streams:
            return None
        return over_replicas(model, run, results, last=run.mode is not Mode.PREDICT)

    return tf.function(program)


def _train(
    model: tf.keras.Model, run: Run, iterator: Iterator[Tensors], emit: Emit
) -> Tensors:
    if model._overrides("train_step"):
        _repeat(run.num_steps, lambda: emit(model.train_step(next(iterator))))
        return model.get_metrics_result()
    update = _update if run.accumulation_steps == 1 else _accumulate_and_update
    num_updates = run.num_steps // run.accumulation_steps
    _repeat(num_updates, lambda: update(model, run, iterator, emit))
    return model.get_metrics_result()


def _update(
    model: tf.keras.Model, run: Run, iterator: Iterator[Tensors], emit: Emit
) -> None:
    with backprop.GradientCaptureContext() as capture:
        gradients = _step_gradients(model, iterator, emit)
        captured = capture.captured_gradients
        updates.apply_gradients(model.optimizer, gradients, captured)


def _accumulate_and_update(
    model: tf.keras.Model, run: Run, iterator: Iterator[Tensors], emit: Emit
) -> None:
    optimizer, options = model.optimizer, model._ipu_options
    # Loss scaling has more to accumulate than gradients, and its own way to apply.
    scales = hasattr(optimizer, "_prepare_for_accumulation")

    def step() -> list[Any]:
        with backprop.GradientCaptureContext() as capture:
            pairs = _step_gradients(model, iterator, emit)
            if scales:
                captured = capture.captured_gradients
                pairs = optimizer._prepare_for_accumulation(pairs, captured)
        return [gradient for gradient, _ in pairs]

    variables = model.trainable_variables
    totals = updates.accumulated(
        step,
        optimizer._accumulated_variables(variables) if scales else variables,
        run.accumulation_steps,
        options.gradient_accumulation_reduction_method,
        options.gradient_accumulation_optimizer_kwargs.get("dtype"),
    )
    off_chip = off_chip_words(options.gradient_accumulation_optimizer_kwargs)
    with weight_update(run.accumulation_steps), marked({OFF_CHIP: off_chip}):
        if scales:
            optimizer._apply_accumulated(totals)
        else:
            updates.apply_gradients(optimizer, totals)


def _step_gradients(
    model: tf.keras.Model, iterator: Iterator[Tensors], emit: Emit
) -> list[tuple[Any, Any]]:
    """Take a batch forward and backward; the gradients with their variables."""
    data = data_adapter.expand_1d(next(iterator))
    x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(data)
    with _tags.phase("forward"):
        predictions = model(x, training=True)
        loss = model.compute_loss(x, y, predictions, sample_weight)
        emit(model.compute_metrics(x, y, predictions, sample_weight))
    variables = model.trainable_variables
    return updates.compute_gradients(model.optimizer, loss, variables)


def _evaluate(
    model: tf.keras.Model, run: Run, iterator: Iterator[Tensors], emit: Emit
) -> Tensors | None:
    def step() -> None:
        data = next(iterator)
        with _tags.phase("forward"):
            emit(model.test_step(data))

    _repeat(run.num_steps, step)
    return None if run.streams else model.get_metrics_result()


def _predict(
    model: tf.keras.Model, run: Run, iterator: Iterator[Tensors], emit: Emit
) -> Tensors:
    outputs: list[Any] = []

    def step() -> None:
        data = next(iterator)
        with _tags.phase("forward"):
            outputs.append(model.predict_step(data))
            emit(outputs[-1])

    _repeat(run.num_steps, step)
    return outputs[-1]


def _repeat(times: int, body: Callable[[], None]) -> None:
    if times == 1:
        body()
    else:
        loops.repeat(times, lambda: body() or [])


def _counter(model: tf.keras.Model, mode: Mode) -> tf.Variable:
    return getattr(model, f"_{mode.value}_counter")


def reset_metrics_of_all_replicas(
    model: tf.keras.Model, starts: tf.Tensor | None
) -> None:
    """At the start of an epoch, forget what the replicas' own metrics hold.

    The host resets the metrics of the first replica only. `starts` is None where there
    is no other.
    """
    if starts is None:
        return

    def reset() -> tf.Operation:
        model.reset_metrics()
        return tf.no_op()

    tf.cond(starts, reset, tf.no_op)


def over_replicas(
    model: tf.keras.Model, run: Run, results: Tensors, last: bool = False
) -> Tensors:
    """Metrics reduced over the replicas as the model's options say.

    Without a reduction every replica keeps its own, or all get those of the `last`.
    """
    num_replicas = run.num_replicas * run.num_processes
    method = model._ipu_options.replicated_metric_reduction_method
    unreduced = method is ReplicatedMetricReductionMethod.NONE and not last
    if num_replicas == 1 or run.mode is Mode.PREDICT or unreduced:
        return results
    reduce = _REDUCTIONS[method]
    return tf.nest.map_structure(lambda each: reduce(all_gather(each)), results)


_REDUCTIONS: dict[ReplicatedMetricReductionMethod, Callable[[Any], Any]] = {
    ReplicatedMetricReductionMethod.NONE: lambda values: values[-1],
    ReplicatedMetricReductionMethod.LIST: lambda values: values,
    ReplicatedMetricReductionMethod.SUM: lambda values: tf.reduce_sum(values, 0),
    ReplicatedMetricReductionMethod.MEAN: lambda values: tf.reduce_mean(values, 0),
}
