"""A compiled model with its memory on the device: what a call runs.

BoundArgs --split--> micro-batches --engine--> outputs --collect--> what forward
                                                                    returns
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from popple.engine.torch import (
    DeviceMemory,
    InferenceEngine,
    Replay,
    TrainingEngine,
    UpdateRule,
    initial_state,
)
from popple.errors import ArithmeticTrap

from . import _translate as translate
from ._anchors import Anchor, AnchorReader
from ._args import BoundArgs
from ._batching import OutputCollector
from ._compile import CompiledStep, to_device_type
from ._counters import CallTimes, clock, is_sent
from ._errors import Error
from ._logging import logger
from ._memory import load_device, read_device
from ._random import DeviceRandom
from ._structure import rebuild
from .options import Options

__all__ = ["CompiledModel"]

Batches = Iterator[list[torch.Tensor]]


class CompiledModel:
    """Runs a compiled step on the device's own copies of weights and buffers.

    `rule` is the optimiser; None makes it an inference model. `memory` is there once
    weights have been loaded. `arguments` are what the step was compiled for; `random`
    are the random numbers the device draws. `times` and `anchored` are those of the
    newest call.
    """

    def __init__(
        self,
        step: CompiledStep,
        arguments: BoundArgs,
        options: Options,
        rule: UpdateRule | None,
        anchors: Sequence[Anchor] = (),
    ) -> None:
        self.step = step
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
        self.random = DeviceRandom(options)
        self.times = CallTimes()
        self.anchored: dict[str, torch.Tensor] = {}
        self._synthetic: list[torch.Tensor] | None = None
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
        self.memory = load_device(module, self.memory, num_buffer_sets, backend)

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
        """Update by other settings; state they need and old ones did not is zero."""
        self._rule = rule
        if self.memory is None or not self.memory.state:
            return
        for slot, tensors in initial_state(rule, self.memory.weights).items():
            self.memory.state.setdefault(slot, tensors)

    # -- running

    def run(self, bound: BoundArgs) -> Any:
        """Run all micro-batches of a call; what forward returns, put together."""
        inputs = self._inputs(bound)
        self.times = CallTimes()
        outputs = self._outputs(self._split(inputs))
        collectors = [OutputCollector(self._output_plan) for _ in self._output_numbers]
        anchors = self._anchor_reader()
        constants: dict[int, torch.Tensor] = {}
        with self.random.active(self.step.draws_random_numbers):
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
        self.has_run = True
        self.anchored = anchors.results()
        tensors = [
            _to_host_type(constants.get(number, collector.result()))
            for number, collector in enumerate(collectors)
        ]
        return rebuild(self.step.traced.example, tensors)

    @property
    def _is_synthetic(self) -> bool:
        """Whether nothing travels between host and device."""
        return bool(self._options._Popart.options.get("syntheticDataMode"))

    def _anchor_reader(self) -> AnchorReader:
        memory = self.memory
        assert memory is not None
        return AnchorReader(
            self._anchors,
            self.step.exposed,
            weights=lambda replica: memory.weights,
            settings={},
        )

    @property
    def _output_numbers(self) -> range:
        return range(self.step.traced.num_outputs)

    def _inputs(self, bound: BoundArgs) -> list[torch.Tensor]:
        place = self.step.backend.place
        tensors = [place(to_device_type(t)) for t in bound.tensors(self.arguments)]
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
        if not memory.state:
            memory.state = initial_state(rule, memory.weights)
        return self._engine.run(memory, rule, batches)

    def _make_engine(self) -> InferenceEngine | TrainingEngine:
        repetition = translate.repetition(self._options, self.is_training)
        replay = self._checked(self.step.replay)
        traced = self.step.traced
        num_outputs = traced.num_outputs + len(self.step.exposed)
        if self._rule is None:
            return InferenceEngine(replay, num_outputs, repetition)
        return TrainingEngine(replay, num_outputs, traced.trainable, repetition)

    def _checked(self, replay: Replay) -> Replay:
        wanted = self._options._Popart.options.get("enableFloatingPointChecks")
        return replay.with_checks() if wanted else replay


def _normal_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Data of the tensor's type that no host has sent; integers are zero."""
    if not tensor.is_floating_point():
        return torch.zeros_like(tensor)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(tensor.shape, generator=generator).to(tensor.dtype)


def _to_host_type(tensor: torch.Tensor) -> torch.Tensor:
    """Outputs come back in the device's types."""
    tensor = tensor.cpu()
    if tensor.dtype is torch.int64:
        return tensor.to(torch.int32)
    return tensor.to(torch.float32) if tensor.dtype is torch.float64 else tensor
