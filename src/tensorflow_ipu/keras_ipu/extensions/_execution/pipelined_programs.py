"""The programs of a pipelined model: its stages as functions, for `pipeline`.

In: a model with a stage plan and a :class:`Run`. Out: a `tf.function` of an infeed that
runs the pipeline; results go to the outfeed. A stage is given the values it needs from
the stages before it, followed by the targets and sample weights, which travel along.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import ipu_infeed_queue
from tensorflow.python.ipu._programs.loop_counters import current_loop
from tensorflow.python.ipu.eager import backprop
from tensorflow.python.ipu.ops import pipelining_ops
from tensorflow.python.platform import tf_logging as logging
from tf_keras.src.engine import base_layer_utils, data_adapter, input_spec
from tf_keras.src.layers import BatchNormalization

from tensorflow_ipu._types import Function, Tensors

from ... import _tags
from .step_programs import Mode, Run, over_replicas, reset_metrics_of_all_replicas
from .updates import KerasOptimizer

__all__ = ["make_program"]


def make_program(model: tf.keras.Model, run: Run, outfeed: Any) -> Function:
    """The program of a pipelined model."""

    def program(
        iterator: ipu_infeed_queue.IPUIterator, starts: tf.Tensor | None = None
    ) -> None:
        stages = _Stages(model, run)
        _check_weights_have_one_device(model, stages)
        _warn_of_moving_averages(model, stages)
        reset_metrics_of_all_replicas(model, starts)
        context = base_layer_utils.call_context()
        with (
            _tags.tagging(),
            context.enter(
                layer=model,
                inputs=[],
                build_graph=True,
                call_context_args={"training": run.mode is Mode.FIT},
            ),
            backprop.GradientCaptureContext() as capture,
        ):
            pipelining_ops.pipeline(
                stages.functions(),
                inputs=[],
                infeed_queue=iterator._infeed_queue,
                outfeed_queue=outfeed,
                **_arguments(model, run, capture),
            )
        getattr(model, f"_{run.mode.value}_counter").assign_add(run.num_steps)

    return tf.function(program)


def _arguments(model: tf.keras.Model, run: Run, capture: Any) -> dict[str, Any]:
    """What `pipeline` is asked to do with the stages."""
    options = model._ipu_options
    trains = run.mode is Mode.FIT
    count = run.accumulation_steps if trains else run.num_steps
    arguments = {
        # Captured gradients serve loss scaling, which wants them step by step.
        "gradient_accumulation_for_captured_grads": False,
        **options.pipelining_kwargs,
        "gradient_accumulation_count": count,
        "repeat_count": run.num_steps // count,
        "device_mapping": options.pipelining_device_mapping,
        "accumulate_outfeed": run.mode is not Mode.PREDICT
        and bool(options.pipelining_accumulate_outfeed),
        "reduction_method": options.gradient_accumulation_reduction_method,
    }
    if trains:
        # The last stage returns the loss and the metrics: only these are handed out.
        arguments["outfeed_mask"] = [True, False]
        arguments["optimizer_function"] = _optimizer_function(model, capture)
    return arguments


def _optimizer_function(model: tf.keras.Model, capture: Any) -> Callable[..., Any]:
    def optimizer_function(
        loss: tf.Tensor, *_metrics: Any
    ) -> pipelining_ops.OptimizerFunctionOutput:
        optimizer = KerasOptimizer(model.optimizer, lambda: model.trainable_variables)
        return pipelining_ops.OptimizerFunctionOutput(
            optimizer, loss, gradient_capture_context=capture
        )

    return optimizer_function


class _Stages:
    """The stages of a model as functions of tensors."""

    def __init__(self, model: tf.keras.Model, run: Run) -> None:
        self._model = model
        self._network = model._get_network()
        self._run = run
        self.plan = model._stage_plan()
        self._rest: Any = None

    def functions(self) -> list[Callable[..., Any]]:
        """One function for each stage."""
        stages = range(self.plan.num_stages)
        return [functools.partial(self._run_stage, stage) for stage in stages]

    def _run_stage(self, stage: int, *args: Any, **kwargs: Any) -> Tensors:
        # A batch that is one dictionary arrives as keywords.
        given = args if args or not kwargs else (kwargs,)
        values, rest = self._first(given) if stage == 0 else self._next(stage, given)
        with _tags.phase("forward"):
            for call in self.plan.of_stage(stage):
                call.run(values)
            if stage == self.plan.num_stages - 1:
                return self._results(values, rest)
        return [values[number] for number in self.plan.passed_on(stage)] + rest

    def _first(self, batch: Sequence[Any]) -> tuple[dict[int, Any], list[Any]]:
        """The values of the model's inputs, and the flat rest of the batch."""
        network = self._network
        batch = data_adapter.expand_1d(tuple(batch))
        x, *rest = data_adapter.unpack_x_y_sample_weight(batch)
        inputs = network._flatten_to_reference_inputs(x)
        if len(inputs) != len(network.inputs):
            raise ValueError(
                f"Layer {self._model.name} expects {len(network.inputs)} input(s), but "
                f"it received {len(inputs)} input tensors. Inputs received: {inputs}"
            )
        input_spec.assert_input_compatibility(
            network.input_spec, inputs, self._model.name
        )
        self._rest = rest
        conformed = [
            network._conform_to_reference_input(tensor, ref_input=reference)
            for tensor, reference in zip(inputs, network.inputs, strict=True)
        ]
        values = dict(zip(self.plan.inputs, conformed, strict=True))
        return values, [each for each in tf.nest.flatten(rest) if each is not None]

    def _next(
        self, stage: int, given: Sequence[Any]
    ) -> tuple[dict[int, Any], list[Any]]:
        """The values that the stage before passed on, and the rest of the batch."""
        numbers = self.plan.passed_on(stage - 1)
        values = dict(zip(numbers, given, strict=False))
        return values, list(given[len(numbers) :])

    def _results(self, values: dict[int, Any], rest: list[Any]) -> Tensors:
        """What the last stage returns: predictions, metrics, or loss and metrics."""
        model, run = self._model, self._run
        outputs = [values[number] for number in self.plan.outputs]
        predictions = tf.nest.pack_sequence_as(self._network._nested_outputs, outputs)
        if run.mode is Mode.PREDICT:
            return predictions
        remaining = iter(rest)
        y, sample_weight = tf.nest.map_structure(
            lambda each: None if each is None else next(remaining), self._rest
        )
        loss = model.compiled_loss(
            y, predictions, sample_weight, regularization_losses=model.losses
        )
        metrics = model.compute_metrics(None, y, predictions, sample_weight)
        metrics = over_replicas(model, run, metrics)
        if model._ipu_options.pipelining_accumulate_outfeed:
            count = run.accumulation_steps
            if run.mode is Mode.EVALUATE:
                count = run.num_steps
            metrics = tf.nest.map_structure(_only_in_last_of(count), metrics)
        return (loss, metrics) if run.mode is Mode.FIT else metrics


def _only_in_last_of(num_batches: int) -> Callable[[Any], Any]:
    """What makes zero of a tensor in all batches of the pipeline but the last.

    Metrics are of all batches so far: the last one's are the sum that is handed out.
    """
    loop = current_loop()
    assert loop is not None  # a pipeline is one
    is_last = tf.equal(loop.counter, num_batches - 1)
    return lambda tensor: tf.where(is_last, tensor, tf.zeros_like(tensor))


def _check_weights_have_one_device(model: tf.keras.Model, stages: _Stages) -> None:
    mapping = model._ipu_options.pipelining_device_mapping
    devices: dict[int, int] = {}
    for call in stages.plan.calls:
        device = mapping[call.stage] if mapping else call.stage
        first = devices.setdefault(id(call.node.layer), device)
        if first != device and call.node.layer.weights:
            raise ValueError(
                f"Layer {call.node.layer.name} is called on IPU {first} and on IPU "
                f"{device}, but an input can only be used by pipeline stages on the "
                "same IPU, and its weights are one. Change its stages, or the "
                "`device_mapping`."
            )


def _warn_of_moving_averages(model: tf.keras.Model, stages: _Stages) -> None:
    layers = [call.node.layer for call in stages.plan.calls]
    if any(
        isinstance(layer, BatchNormalization) and 0 < layer.momentum < 1
        for layer in layers
    ):
        logging.warn(
            f"The moving statistics of batch normalisation in the pipeline {model.name}"
            " are not kept up properly on an IPU while it trains, so evaluation and"
            " prediction may normalise otherwise than training did."
        )
