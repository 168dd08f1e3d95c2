"""A compiled model with its memory on the device: what a call runs.

BoundArgs --split--> micro-batches --engine--> outputs --collect--> what forward
                                                                    returns
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from popple.engine.torch import (
    CudaGraphs,
    DeviceMemory,
    GpuCapture,
    InferenceEngine,
    LossScale,
    Replay,
    TrainingEngine,
    UpdateRule,
    apply_update,
    compiled_update,
    initial_state,
    with_equal_steps,
)
from popple.errors import ArithmeticTrap

from . import _translate as translate
from ._arguments.args import BoundArgs
from ._arguments.returned import to_host
from ._arguments.structure import rebuild
from ._batching import OutputCollector
from ._compile import CompiledStep, to_device_type
from ._errors import Error
from ._logging import logger
from ._memory import load_device, read_device
from ._model.anchors import FINAL_LOSS_SCALE, Anchor, AnchorReader
from ._model.counters import CallTimes, clock, is_sent
from ._random import DeviceRandom
from ._replica_groups import (
    GroupedMemory,
    Groupings,
    with_grouped_update,
    with_whole_gradients,
)
from .options import Options

__all__ = ["CompiledModel"]

Batches = Iterator[list[torch.Tensor]]

_NO_GRAPH = "The model runs on the GPU without a CUDA graph: %s."


class CompiledModel:
    """Runs a compiled step on the device's own copies of weights and buffers.

    `rule` is the optimiser; None makes it an inference model. `memory` is there once
    weights have been loaded. `arguments` are what the step was compiled for; `random`
    are the random numbers the device draws. `times` and `anchored` are those of the
    newest call; `settings` gives the optimiser's numbers by name.
    """

    def __init__(
        self,
        step: CompiledStep,
        arguments: BoundArgs,
        options: Options,
        rule: UpdateRule | None,
        anchors: Sequence[Anchor] = (),
        groupings: Groupings | None = None,
    ) -> None:
        self.step = step
        self.groupings: Groupings = groupings or {}
        self.arguments = arguments
        self.memory: DeviceMemory | None = None
        self.has_run = False
        self._options = options
        self._rule = rule
        self._batch_plan = translate.batch_plan(options, self.is_training)
        self._output_plan = translate.output_plan(options, self.is_training)
        self._places = list(self._batch_plan.micro_batches())
        self._is_sent = [is_sent(self._output_plan, place) for place in self._places]
        self._anchors = anchors
        self.random = DeviceRandom(options, step.backend.device)
        self.times = CallTimes()
        self.anchored: dict[str, torch.Tensor] = {}
        self.settings: Callable[[], Mapping[str, torch.Tensor]] = dict
        # Whether nothing travels between host and device, and what is used instead.
        self._is_synthetic = bool(options._Popart.options.get("syntheticDataMode"))
        self._synthetic: list[torch.Tensor] | None = None
        self._graphs = self._make_graphs()
        self._engine = self._make_engine()

    @property
    def is_training(self) -> bool:
        """Whether calls update the weights."""
        return self._rule is not None

    # -- memory

    def load(self, module: nn.Module) -> None:
        """Copy the module's weights and buffers to the device."""
        logger.debug("Writing weights from host to IPU memory")
        shared = self._options.broadcast_buffers
        num_buffer_sets = 1 if shared else self._options.replication_factor
        backend = self.step.backend
        self.memory = load_device(
            module, self.memory, num_buffer_sets, backend, self.groupings
        )
        if self._rule is not None and not self.memory.state:
            self.memory.state = initial_state(self._rule, self.memory.weights)
        if self.step.scales_loss and self.memory.loss_scale is None:
            automatic = translate.automatic_scaling(self._options)
            self.memory.loss_scale = LossScale(automatic, backend.device)

    def read(self, module: nn.Module) -> None:
        """Copy the device's weights and buffers to the module."""
        if self.memory is not None:
            logger.debug("Writing weights from IPU to host")
            read_device(self.memory, module)

    def load_buffers(self, module: nn.Module, names: list[str]) -> None:
        """Copy only these buffers to the device."""
        buffers = dict(module.named_buffers())
        for held in self.memory.buffers if self.memory else ():
            for name in names:
                held[name].copy_(buffers[name])

    def use_rule(self, rule: UpdateRule) -> None:
        """Update by this rule from the next call on; state stays as it is."""
        assert self.memory is not None
        self._rule = with_equal_steps(rule, self.memory.state)

    # -- running

    def run(self, bound: BoundArgs) -> Any:
        """Run all micro-batches of a call; what forward returns, put together."""
        self.times = CallTimes()
        outputs = self._outputs(self._split(self._inputs(bound)))
        is_single = len(self._places) == 1 and not self._anchors
        with self.random.active(self.step.draws_random_numbers):
            tensors = self._only(outputs) if is_single else self._collected(outputs)
        self.has_run = True
        return rebuild(self.step.traced.example, [to_host(t) for t in tensors])

    def _only(self, outputs: Iterator[list[torch.Tensor]]) -> list[torch.Tensor]:
        """The outputs of a call that runs one micro-batch: nothing to put together."""
        (results,) = outputs
        if not self._is_synthetic:
            self.times.add_output(clock())
        return results[: self.step.traced.num_outputs]

    def _collected(self, outputs: Iterator[list[torch.Tensor]]) -> list[torch.Tensor]:
        """The outputs and anchored tensors of all micro-batches, put together."""
        numbers = range(self.step.traced.num_outputs)
        collectors = [OutputCollector(self._output_plan) for _ in numbers]
        anchors = self._anchor_reader()
        constants: dict[int, torch.Tensor] = {}
        steps = zip(self._places, self._is_sent, outputs, strict=True)
        for place, sends, results in steps:
            ready = clock()
            for number, collector in enumerate(collectors):
                collector.add(place, results[number])
                if number in self.step.constant_outputs:
                    constants.setdefault(number, results[number])
            anchors.add(place, results[len(collectors) :])
            if sends and not self._is_synthetic:
                self.times.add_output(ready)
        self.anchored = anchors.results()
        return [constants.get(n, c.result()) for n, c in enumerate(collectors)]

    def _anchor_reader(self) -> AnchorReader:
        memory = self.memory
        assert memory is not None
        settings = dict(self.settings()) if self._anchors else {}
        if memory.loss_scale is not None:
            settings[FINAL_LOSS_SCALE] = memory.loss_scale.argument
        return AnchorReader(
            self._anchors,
            self.step.exposed,
            weights=memory.weights_of
            if isinstance(memory, GroupedMemory)
            else lambda replica: memory.weights,
            settings=settings,
        )

    def _inputs(self, bound: BoundArgs) -> list[torch.Tensor]:
        tensors = [to_device_type(t) for t in bound.tensors(self.arguments)]
        if self._graphs is None:
            tensors = [self.step.backend.place(tensor) for tensor in tensors]
        if not self._is_synthetic:
            return tensors
        if self._synthetic is None:
            self._synthetic = [_normal_numbers(tensor) for tensor in tensors]
        return self._synthetic

    def _split(self, inputs: list[torch.Tensor]) -> Batches:
        plan = self._batch_plan
        shares = [plan.split(tensor) for tensor in inputs]
        for place in self._places:
            asked = clock()
            index = plan.share_of(place)
            batch = [parts[index] for parts in shares]
            if not self._is_synthetic:
                self.times.add_input(asked)
            yield batch

    def _outputs(self, batches: Batches) -> Iterator[list[torch.Tensor]]:
        """The outputs of each micro-batch as it finishes."""
        try:
            yield from self._engine_run(batches)
        except ArithmeticTrap as trap:
            raise Error(f"Floating-point exception: {trap}") from trap

    def _engine_run(self, batches: Batches) -> Iterator[list[torch.Tensor]]:
        memory, rule = self.memory, self._rule
        assert memory is not None
        if isinstance(self._engine, InferenceEngine):
            return self._engine.run(memory, batches)
        assert rule is not None
        return self._engine.run(memory, rule, batches)

    def _make_graphs(self) -> CudaGraphs | None:
        """CUDA graphs, where steps run on a GPU and do not need the host."""
        if self.step.backend.device != "cuda":
            return None
        operators = self.step.replay.host_operators
        if operators or self._is_checked:
            reason = ", ".join(operators) or "floating-point exceptions"
            logger.warning(_NO_GRAPH, f"{reason} cannot be part of one")
            return None
        warn = partial(logger.warning, _NO_GRAPH)
        return CudaGraphs(self._num_results, warn, GpuCapture(), self.step.outbox)

    @property
    def _num_results(self) -> int:
        """Outputs and exposed tensors."""
        return self.step.traced.num_outputs + len(self.step.exposed)

    def _make_engine(self) -> InferenceEngine | TrainingEngine:
        repetition = translate.repetition(self._options, self.is_training)
        replay = self._checked(self.step.replay)
        traced, num_outputs = self.step.traced, self._num_results
        if self._rule is None:
            return InferenceEngine(replay, num_outputs, repetition, self._graphs)
        update = self._make_update()
        if self.groupings:
            names = (traced.parameters, traced.trainable)
            replay = with_whole_gradients(replay, num_outputs, *names, self.groupings)
            update = with_grouped_update(update, self.groupings)
        return TrainingEngine(
            replay,
            num_outputs,
            traced.trainable,
            repetition,
            update=update,
            graphs=self._graphs,
        )

    def _make_update(self) -> Callable[..., None]:
        if self.step.arithmetic is not None:
            return self.step.arithmetic.update
        if self._graphs is not None and self.step.backend.name == "inductor":
            return compiled_update()
        return apply_update

    @property
    def _is_checked(self) -> bool:
        return bool(self._options._Popart.options.get("enableFloatingPointChecks"))

    def _checked(self, replay: Replay) -> Replay:
        if not self._is_checked:
            return replay
        if self.step.backend.name != "replay":
            raise Error(
                "Floating-point exceptions need the replay backend, which runs one "
                f"operator after the other, not {self.step.backend.name}. Switch one "
                "of them off."
            )
        return replay.with_checks()


def _normal_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Data of the tensor's type that no host has sent; integers are zero."""
    if not tensor.is_floating_point():
        return torch.zeros_like(tensor)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(tensor.shape, generator=generator).to(tensor.dtype)
