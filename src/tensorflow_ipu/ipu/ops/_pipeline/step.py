"""One batch through a pipeline, forward and backward, and the weight update after it.

A step is traced once, into a function of the iteration, the number of batches and the
pipeline's inputs. It returns what is summed over the batches of an update (gradients,
accumulated outputs) and what the update needs as it was in the last batch.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import ops

from popple import marks
from popple.engine.tensorflow import replicas
from tensorflow_ipu._types import Optimizer, Returned

from ... import scopes
from ..._programs.loop_counters import counting
from ..._programs.marks import marked
from ...loops import _body_arguments
from .._tensors import Dtype, Tensor, as_list, flat_list
from .accumulation import accumulator_dtype
from .optimizer_function import OptimizerFunctionOutput, is_optimizer_v2
from .settings import ALL_DEVICES, Settings
from .traced import Traced


@dataclass(frozen=True)
class Summed:
    """A tensor of each batch whose sum the update gets, and the type of the sum."""

    tensor: Tensor
    dtype: Dtype
    is_gradient: bool


@dataclass
class _Update:
    """What the weight update will do, gathered while the step is traced.

    `summed` are tensors of the step. `apply` gets their sums, in the same order.
    """

    summed: list[Summed] = field(default_factory=list)
    apply: list[Callable[[Sequence[Tensor]], Any]] = field(default_factory=list)

    def add(
        self, summed: Sequence[Summed], apply: Callable[[list[Tensor]], Any]
    ) -> None:
        """Sum these and call `apply` with the sums when the batches are through."""
        first = len(self.summed)
        self.summed += summed
        last = len(self.summed)
        self.apply.append(lambda sums: apply(list(sums[first:last])))

    def run(self, sums: Sequence[Tensor]) -> None:
        """Do everything."""
        for apply in self.apply:
            apply(sums)


class Step:
    """The traced step of a pipeline and its weight update."""

    def __init__(self, settings: Settings, inputs: Sequence[Tensor]) -> None:
        self._settings = settings
        self._update = _Update()
        self._update_function: Traced | None = None
        self._carried: list[Tensor] = []
        self.summed: list[Summed] = []
        number = tf.TensorSpec([], tf.int32)
        self.function = Traced(
            settings.name, self._trace, [number, number, *map(_spec, inputs)]
        )
        _check_captures(self.function)

    def initial_state(self) -> list[Tensor]:
        """Zeros for the sums, and for what is carried from the last batch."""
        sums = [tf.zeros(s.tensor.shape, s.dtype) for s in self.summed]
        return [*sums, *(tf.zeros(t.shape, t.dtype) for t in self._carried)]

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """One batch: what is summed, what is carried, and a sign that it is done."""
        outputs = self.function.call(inputs)
        # The call itself, and not a tensor it returns: that may be ready before the
        # operations in it that have effects.
        with tf.control_dependencies([outputs[0].op]):
            return [*outputs[:-1], tf.identity(outputs[-1])]

    def update(
        self,
        sums: Sequence[Tensor],
        carried: Sequence[Tensor],
        inputs: Sequence[Tensor],
    ) -> tf.Operation:
        """Run the weight update; `inputs` are those of the step but for the first."""
        if self._update_function is None:
            return tf.no_op()
        values = dict(zip(map(id, self._carried), carried, strict=True))
        given = zip(self.function.graph.inputs[1:], inputs, strict=False)
        values.update((id(inside), outside) for inside, outside in given)

        def outer(capture: Tensor) -> Tensor:
            if id(capture) in values:
                return values[id(capture)]
            found = self.function.outer_of(capture)
            return capture if found is None else found

        captures = [outer(capture) for capture in self._update_function.captures]
        return self._update_function.call(sums, captures)[0].op

    def _trace(
        self, iteration: Tensor, count: Tensor, *inputs: Tensor
    ) -> list[tf.Tensor]:
        settings = self._settings
        num_trips = settings.count if isinstance(settings.count, int) else None
        with counting(iteration, num_trips):
            outputs = run_stages(settings, list(inputs))
            if settings.training:
                self._train(as_list(outputs))
            else:
                self._infer(outputs)
        self.summed = list(self._update.summed)
        self._trace_update()
        kept = [*(summed.tensor for summed in self.summed), *self._carried]
        return [*kept, tf.constant(0)]

    def _trace_update(self) -> None:
        """Trace the update inside the step, so that it can use the step's tensors."""
        if not self._update.apply:
            return
        graph = ops.get_default_graph()

        def update(*sums: Tensor) -> Tensor:
            with marked({marks.PHASE: "update"}):
                self._update.run(sums)
            return tf.constant(0)

        # In the types of the sums, which may be wider than those of the gradients.
        specs = [tf.TensorSpec(s.tensor.shape, s.dtype) for s in self.summed]
        self._update_function = Traced(f"{self._settings.name}_update", update, specs)
        self._carried = [
            capture
            for capture in self._update_function.captures
            if getattr(capture, "graph", None) is graph
            and not any(capture is known for known in graph.inputs[1:])
        ]

    def _infer(self, outputs: Returned) -> None:
        settings = self._settings
        if outputs is None or isinstance(outputs, tf.Operation):
            return
        self._check_outfeed(as_list(outputs))
        if settings.accumulate_outfeed:
            self._accumulate_outputs(as_list(outputs))
        else:
            kept = isinstance(outputs, dict) or tf.is_tensor(outputs)
            settings.outfeed_queue.enqueue(outputs if kept else as_list(outputs))

    def _train(self, outputs: list[Any]) -> None:
        optimizer_function = self._settings.optimizer_function
        assert optimizer_function is not None
        how: OptimizerFunctionOutput = optimizer_function(*outputs)
        self._feed_out(outputs, how.loss)
        with marked({marks.PHASE: "backward"}):
            pairs = _gradients(how)
        override = self._settings.gradient_accumulation_dtype
        dense = [
            Summed(tf.convert_to_tensor(grad), accumulator_dtype(var, override), True)
            for grad, var in pairs
            if grad is not None
        ]
        captured = self._captured(how)

        def apply(sums: list[Tensor]) -> None:
            remaining = iter(sums[: len(dense)])
            totals = [(g if g is None else next(remaining), var) for g, var in pairs]
            _apply(how, totals, captured.of(sums[len(dense) :]))

        self._update.add([*dense, *captured.summed], apply)

    def _captured(self, how: OptimizerFunctionOutput) -> _Captured:
        found = how.capturing.captured_gradients if how.capturing else {}
        if not self._settings.accumulate_captured_gradients:
            return _Captured(found, [])
        override = self._settings.gradient_accumulation_dtype
        summed = [
            Summed(gradient, accumulator_dtype(gradient, override), True)
            for gradient in tf.nest.flatten(found)
        ]
        return _Captured(found, summed)

    def _feed_out(self, outputs: list[Any], loss: Tensor) -> None:
        """Hand the host the loss, or the outputs that are not masked."""
        settings = self._settings
        if settings.outfeed_loss and settings.outfeed_queue is None:
            raise ValueError(
                "An outfeed_queue must be provided for the loss of outfeed_loss."
            )
        shown = [loss] if settings.outfeed_loss else self._unmasked(outputs)
        if not shown:
            return
        self._check_outfeed(shown)
        if settings.accumulate_outfeed:
            self._accumulate_outputs(shown)
        else:
            bare = settings.outfeed_loss
            settings.outfeed_queue.enqueue(loss if bare else shown)

    def _unmasked(self, outputs: list[Any]) -> list[Any]:
        mask = self._settings.outfeed_mask or [False] * len(outputs)
        if len(mask) != len(outputs):
            raise ValueError(
                f"`outfeed_mask` has {len(mask)} elements for the {len(outputs)} "
                "outputs of the last stage: it needs one for each."
            )
        return [out for out, hide in zip(outputs, mask, strict=True) if not hide]

    def _accumulate_outputs(self, outputs: list[Any]) -> None:
        """Sum the outputs over the batches and hand the host the sums."""
        settings = self._settings
        override = settings.accumulate_outfeed_dtype
        summed = [
            Summed(tensor, accumulator_dtype(tensor, override), False)
            for tensor in tf.nest.flatten(outputs)
        ]

        def enqueue(sums: list[Tensor]) -> None:
            packed = tf.nest.pack_sequence_as(outputs, sums)
            settings.outfeed_queue.enqueue(
                packed[0] if settings.outfeed_loss else packed
            )

        self._update.add(summed, enqueue)

    def _check_outfeed(self, outputs: list[Any]) -> None:
        if self._settings.outfeed_queue is None:
            raise ValueError(
                "The last computational stage has tensor outputs, and no outfeed_queue "
                f"has been provided for them: {', '.join(map(str, outputs))}."
            )


@dataclass(frozen=True)
class _Captured:
    """Captured gradients by tag, and those of them that are summed."""

    gradients: dict[str, list[Tensor]]
    summed: list[Summed]

    def of(self, sums: Sequence[Tensor]) -> dict[str, list[Tensor]]:
        """The same with the sums in place of the tensors, if there are sums."""
        if not self.summed:
            return self.gradients
        return tf.nest.pack_sequence_as(self.gradients, list(sums))


def run_stages(settings: Settings, inputs: list[Any]) -> Returned:
    """What the last stage returns for the inputs and an element of the infeed."""
    args, kwargs = list(inputs), {}
    if settings.infeed_queue is not None:
        fed, kwargs = _body_arguments(settings.infeed_queue._dequeue())
        args += fed
    outputs: Any = args
    for number, stage in enumerate(settings.stages):
        device = settings.device_mapping[number]
        # No name scope: it would change the names of variables that the stage makes.
        said = {
            marks.STAGE: number,
            marks.SCHEDULE: int(settings.schedule),
            marks.OFF_CHIP: settings.off_chip,
            marks.STAGE_OPTIONS: settings.stage_options,
        }
        with marked(said):
            outputs = _run_stage(stage, device, as_list(outputs), kwargs)
        kwargs = {}
    return outputs


def _run_stage(
    stage: Any, device: Any, args: list[Any], kwargs: dict[str, Any]
) -> Returned:
    """One stage; functions side by side get the same inputs."""
    if not isinstance(stage, list):
        anywhere = contextlib.nullcontext()
        with anywhere if device == ALL_DEVICES else scopes.ipu_shard(device):
            return _as_tensors(stage(*args, **kwargs))
    if not isinstance(device, list):
        raise ValueError(
            "A stage that is a list of functions needs a list of IPUs in "
            "`device_mapping`, one for each."
        )
    if len(stage) != len(device):
        raise ValueError(
            "Pipeline stage list and device_id list must be the same length; they have "
            f"{len(stage)} and {len(device)} elements."
        )
    if any(isinstance(part, list) for part in stage):
        raise NotImplementedError(
            "A stage may be a list of functions, but not of lists: write one list."
        )
    pairs = zip(stage, device, strict=True)
    return flat_list([_run_stage(part, ipu, args, kwargs) for part, ipu in pairs])


def _as_tensors(outputs: Returned) -> Returned:
    def convert(value: Any) -> Returned:
        done = value is None or isinstance(value, tf.Operation)
        return value if done else tf.convert_to_tensor(value)

    return tf.nest.map_structure(convert, outputs)


def _gradients(how: OptimizerFunctionOutput) -> list[tuple[Any, Any]]:
    """Pairs of gradient and variable."""
    if not is_optimizer_v2(how.opt):
        pairs = how.opt.compute_gradients(
            how.loss, *how.compute_gradients_args, **how.compute_gradients_kwargs
        )
        return [(_zero_if_unused(gradient, var), var) for gradient, var in pairs]
    variables = how.tape.watched_variables() if how.tape else how.variables
    if not variables:
        raise RuntimeError(
            "No variables to optimize. With a Keras optimizer, OptimizerFunctionOutput "
            "must contain a list of variables or a GradientTape."
        )
    gradients = how.opt.get_gradients(how.loss, list(variables))
    return list(zip(gradients, variables, strict=True))


def _zero_if_unused(gradient: tf.Tensor, variable: tf.Variable) -> tf.Tensor | None:
    """The gradient; zero for a variable of the stages that the loss does not need.

    A stage passes a gradient on to everything it was given, its variables too.
    """
    captures = ops.get_default_graph().captures
    if gradient is not None or all(
        outer is not variable.handle for outer, _ in captures
    ):
        return gradient
    return tf.zeros(variable.shape, variable.dtype.base_dtype)


def _apply(
    how: OptimizerFunctionOutput,
    totals: list[tuple[Any, Any]],
    captured: dict[str, list[Tensor]],
) -> None:
    """Apply the sums, and show captured gradients to whom they concern."""
    kwargs = dict(how.apply_gradients_kwargs)
    if captured and _takes_captured_gradients(how.opt):
        kwargs["captured_grads"] = captured
    how.opt.apply_gradients(totals, *how.apply_gradients_args, **kwargs)
    if captured and how.captured_gradient_outfeed is not None:
        how.captured_gradient_outfeed.enqueue(captured)


def _takes_captured_gradients(opt: Optimizer) -> bool:
    if getattr(opt, "supports_captured_grads", False):
        return True
    return "captured_grads" in inspect.signature(opt.apply_gradients).parameters


def _spec(tensor: Tensor) -> tf.TensorSpec:
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _check_captures(function: Traced) -> None:
    """Refuse tensors from outside: they would not be fed batch by batch."""
    for capture in function.captures:
        is_value = capture.dtype not in (tf.resource, tf.variant)
        is_eager = isinstance(capture, ops.EagerTensor)
        if is_value and not is_eager and not replicas.is_varying(capture):
            raise ValueError(
                f"Trying to capture the tensor {capture.name} from outside of the "
                "stages. Pass it to the pipeline, in `inputs` or through the "
                "`infeed_queue`."
            )
