"""TorchSession: a compiled step with its device memory; runs the calls of a program.

tensors --split--> micro-batches --engine--> outputs --collect--> tensors
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from popple.engine.torch.cuda_graphs import CudaGraphs, GpuCapture, host_operators
from popple.engine.torch.run import (
    DeviceMemory,
    InferenceEngine,
    TrainingEngine,
    Update,
)
from popple.engine.torch.session.groups import (
    GroupedMemory,
    Groupings,
    ReplicaGrouping,
    with_grouped_update,
    with_whole_gradients,
)
from popple.engine.torch.session.memory import load_device, read_device
from popple.engine.torch.session.outputs import (
    OutputCollector,
    Watched,
    WatchedReader,
)
from popple.engine.torch.session.random import DeviceRandom
from popple.engine.torch.session.step import CompiledStep
from popple.engine.torch.updates.compiled import compiled_update
from popple.engine.torch.updates.loss_scale import AutomaticScaling, LossScale
from popple.engine.torch.updates.update import (
    UpdateRule,
    apply_update,
    initial_state,
    with_equal_steps,
)
from popple.errors import UsageError
from popple.pipeline import run_call
from popple.session import BatchPlan, OutputPlan, Repetition, Returned
from popple.session.interrupts import safe_point
from popple.session.times import CallTimes, clock

if TYPE_CHECKING:
    from popple.engine.torch.peers import Peers

Batches = Iterator[list[Tensor]]

FINAL_LOSS_SCALE = "finalLossScale"
"""The watched tensor that is the loss scale as a step used it."""

_LOG = logging.getLogger(__name__)
_UNEQUAL_WEIGHTS = (
    "The instances of this job begin with different weights, and keep them different. "
    "Seed all of them alike, by Options.randomSeed() or torch.manual_seed() before the "
    "model is made, or send the weights of instance 0 to all."
)
_NO_GRAPH = "The model runs on the GPU without a CUDA graph: %s."


@dataclass(frozen=True)
class SessionOptions:
    """How the step of a session is repeated, fed and watched.

    `process` is the number of this one among `repetition.processes`. There is one set
    of buffers, or one for each replica. A `seed` of None is taken
    from the host. With `is_synthetic` nothing travels between host and device; with
    `is_checked` a run stops at the first inf or NaN. With `is_model_only` nothing is
    computed: results are zeros, weights stay as they are.
    """

    batches: BatchPlan = field(default_factory=BatchPlan)
    outputs: OutputPlan = field(default_factory=lambda: OutputPlan(Returned.ALL))
    repetition: Repetition = field(default_factory=Repetition)
    watched: tuple[Watched, ...] = ()
    groupings: Groupings = field(default_factory=dict[str, ReplicaGrouping])
    process: int = 0
    num_buffer_sets: int = 1
    seed: int | None = None
    automatic: AutomaticScaling | None = None
    is_synthetic: bool = False
    is_checked: bool = False
    is_model_only: bool = False

    @property
    def first_replica(self) -> int:
        """Number of this process's first replica among those of all processes."""
        return self.process * self.repetition.replicas


class TorchSession:
    """Runs a compiled step on the device's own copies of weights and buffers.

    `rule` is the optimiser; None makes it an inference model. `memory` is there once
    weights have been loaded. `random` are the random numbers the device draws. `times`
    and `seen`, the watched tensors by key, are those of the newest call. `settings`
    gives the optimiser's numbers by name.
    """

    def __init__(
        self, step: CompiledStep, options: SessionOptions, rule: UpdateRule | None
    ) -> None:
        self.step = step
        self.options = options
        self.memory: DeviceMemory | None = None
        self.has_run = False
        self.random = DeviceRandom(
            options.seed,
            step.backend.device,
            options.repetition.replicas,
            options.first_replica,
        )
        self.times = CallTimes()
        self.seen: dict[str, Tensor] = {}
        self.settings: Callable[[], Mapping[str, Tensor]] = dict
        self._rule = rule
        self._places = list(options.batches.micro_batches())
        # The same in every call: computed once, since a call may be a few hundred
        # microseconds.
        self._is_sent = [options.outputs.is_sent(place) for place in self._places]
        self._synthetic: list[Tensor] | None = None
        self._peers: Peers | None = None
        self._check_backend()

    def prepare(self) -> None:
        """Make what runs the step, which is otherwise made by the first call."""
        _ = self._engine

    # -- memory

    def load(self, module: nn.Module) -> None:
        """Copy the module's weights and buffers to the device."""
        options, is_first = self.options, self.memory is None
        self.memory = load_device(
            module,
            self.memory,
            options.num_buffer_sets,
            self.step.backend,
            options.groupings,
            options.first_replica,
        )
        if is_first:
            self._add_state(self.memory)

    def _add_state(self, memory: DeviceMemory) -> None:
        """What an optimiser needs beside the weights."""
        backend = self.step.backend
        if self._rule is not None:
            memory.make_state = partial(initial_state, self._rule, memory.weights)
        if self._graphs is not None:
            # A captured graph that made it would make it in every step.
            _ = memory.state
        if self.step.scales_loss:
            memory.loss_scale = LossScale(self.options.automatic, backend.device)

    def read(self, module: nn.Module) -> None:
        """Copy the device's weights and buffers to the module."""
        if self.memory is not None:
            read_device(self.memory, module)

    def load_buffers(self, module: nn.Module, names: Sequence[str]) -> None:
        """Copy only these buffers to the device."""
        buffers = dict(module.named_buffers())
        for held in self.memory.buffers if self.memory else ():
            for name in names:
                held[name].copy_(buffers[name])

    def use_rule(self, rule: UpdateRule) -> None:
        """Update by this rule from the next call on; state stays as it is."""
        assert self.memory is not None
        memory = self.memory
        self._rule = with_equal_steps(rule, memory.state if memory.has_state else {})

    # -- running

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run all micro-batches of a call; its outputs, put together, on the host."""
        self.times = CallTimes()
        with self.random.active(self.step.draws_random_numbers):
            tensors = run_call(self, inputs)
        self.has_run = True
        return [_to_host(tensor) for tensor in tensors]

    def _on_device(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The inputs in types of the device, or data that stand for them."""
        tensors = [self.step.backend.typed(tensor) for tensor in inputs]
        # CUDA graphs copy inputs themselves, from the host into memory of their own.
        if self._graphs is None:
            tensors = [self.step.backend.place(tensor) for tensor in tensors]
        if not self.options.is_synthetic:
            return tensors
        if self._synthetic is None:
            self._synthetic = [_normal_numbers(tensor) for tensor in tensors]
        return self._synthetic

    def split(self, inputs: Sequence[Tensor]) -> Batches:
        """The micro-batches of a call: views of its inputs."""
        plan = self.options.batches
        shares = [_split(t, plan.num_shares) for t in self._on_device(inputs)]
        for place in self._places:
            safe_point()  # the update of the micro-batches before is complete
            asked = clock()
            index = plan.share_of(place)
            batch = [parts[index] for parts in shares]
            if not self.options.is_synthetic:
                self.times.add_input(asked)
            yield batch

    def execute(self, batches: Batches) -> Batches:
        """The outputs of each micro-batch as it finishes; weights are updated."""
        memory, rule = self.memory, self._rule
        assert memory is not None
        if self.options.is_model_only:
            return self._pretend(batches)
        if isinstance(self._engine, InferenceEngine):
            return self._engine.run(memory, batches)
        assert rule is not None
        return self._engine.run(memory, rule, batches)

    def _pretend(self, batches: Batches) -> Batches:
        """Zeros in the shapes of the results, for every micro-batch."""
        zeros = self.step.zero_results()
        return (list(zeros) for _ in batches)

    def collect(self, outputs: Batches) -> list[Tensor]:
        """The outputs that the call returns; watched tensors are kept."""
        # The common case of a small model, where collecting would cost more than the
        # step.
        is_single = len(self._places) == 1 and not self.options.watched
        return self._only(outputs) if is_single else self._collected(outputs)

    def _only(self, outputs: Batches) -> list[Tensor]:
        """The outputs of a call that runs one micro-batch: nothing to put together."""
        (results,) = outputs
        if not self.options.is_synthetic:
            self.times.add_output(clock())
        return results[: self.step.facts.num_outputs]

    def _collected(self, outputs: Batches) -> list[Tensor]:
        """The outputs and watched tensors of all micro-batches, put together."""
        numbers = range(self.step.facts.num_outputs)
        collectors = [OutputCollector(self.options.outputs) for _ in numbers]
        watched = self._watched_reader()
        constants: dict[int, Tensor] = {}
        steps = zip(self._places, self._is_sent, outputs, strict=True)
        for place, sends, results in steps:
            ready = clock()
            for number, collector in enumerate(collectors):
                collector.add(place, results[number])
                if number in self.step.constant_outputs:
                    # An output that was compiled in is returned once, not once per
                    # micro-batch.
                    constants.setdefault(number, results[number])
            watched.add(place, results[len(collectors) :])
            if sends and not self.options.is_synthetic:
                self.times.add_output(ready)
        self.seen = watched.results()
        return [constants.get(n, c.result()) for n, c in enumerate(collectors)]

    def _watched_reader(self) -> WatchedReader:
        memory, watched = self.memory, self.options.watched
        assert memory is not None
        settings = dict(self.settings()) if watched else {}
        if memory.loss_scale is not None:
            settings[FINAL_LOSS_SCALE] = memory.loss_scale.argument
        return WatchedReader(
            watched,
            tuple(self.step.exposed),
            weights=memory.weights_of
            if isinstance(memory, GroupedMemory)
            else lambda replica: memory.weights,
            settings=settings,
        )

    # -- making

    @cached_property
    def _graphs(self) -> CudaGraphs | None:
        """CUDA graphs, where steps run on a GPU and do not need the host."""
        if self.step.backend.device != "cuda":
            return None
        graph = self.step.replay.graph
        operators = () if graph is None else host_operators(graph)
        if operators or self.options.is_checked:
            reason = ", ".join(operators) or "floating-point exceptions"
            _LOG.warning(_NO_GRAPH, f"{reason} cannot be part of one")
            return None
        warn = partial(_LOG.warning, _NO_GRAPH)
        return CudaGraphs(self.step.num_results, warn, GpuCapture(), self.step.outbox)

    @cached_property
    def _engine(self) -> InferenceEngine | TrainingEngine:
        step, repetition = self.step, self.options.repetition
        groupings, num_results = self.options.groupings, step.num_results
        is_checked = self.options.is_checked
        replay = step.replay.with_checks() if is_checked else step.replay
        on_replica = self.random.use if step.draws_random_numbers else lambda r: None
        if self._rule is None:
            return InferenceEngine(
                replay, num_results, repetition, self._graphs, on_replica
            )
        update = self._make_update()
        if groupings:
            names = (step.facts.parameters, step.facts.trainable)
            replay = with_whole_gradients(replay, num_results, *names, groupings)
            update = with_grouped_update(update, groupings)
        return TrainingEngine(
            replay,
            num_results,
            step.facts.trainable,
            repetition,
            reduce_gradients=self._find_reduction(),
            update=update,
            graphs=self._graphs,
            on_replica=on_replica,
        )

    def _find_reduction(self) -> Callable[[list[Tensor]], list[Tensor]] | None:
        """What adds gradients over the processes of a job, if there are several."""
        if self.options.repetition.processes == 1:
            return None
        # Connected when it is needed: a model may be compiled by one process alone.
        return lambda gradients: self._connected_peers().sums_of(gradients)

    def _connected_peers(self) -> Peers:
        """The other processes; the first time, that they train the same is checked."""
        if self._peers is not None:
            return self._peers
        # Here, since not every build of PyTorch has its distributed part.
        from popple.engine.torch.peers import connect_peers

        assert self.memory is not None
        count, device = self.options.repetition.processes, self.step.backend.device
        peers = connect_peers(self.options.process, count, device)
        if not peers.check_equal(list(self.memory.weights.values())):
            _LOG.warning(_UNEQUAL_WEIGHTS)
        self._peers = peers
        return peers

    def _make_update(self) -> Update:
        if self.step.arithmetic is not None:
            return self.step.arithmetic.update
        if self._graphs is not None and self.step.backend.name == "inductor":
            return compiled_update()
        return apply_update

    def _check_backend(self) -> None:
        """Refuse what the backend cannot do, before anything is made for it."""
        _ = self.step.arithmetic
        if self.options.is_checked and self.step.backend.name != "replay":
            raise UsageError(
                "Floating-point exceptions need the replay backend, which runs one "
                f"operator after the other, not {self.step.backend.name}.",
                remedy="Switch one of them off.",
            )


def _split(tensor: Tensor, num_parts: int) -> Sequence[Tensor]:
    """Equal parts of the tensor, as views."""
    if num_parts == 1:
        return [tensor]
    return tensor.split(tensor.shape[0] // num_parts)


def _to_host(tensor: Tensor) -> Tensor:
    """An output as the program gets it: int64 becomes int32, float64 float32."""
    tensor = tensor.cpu()
    if tensor.dtype is torch.int64:
        return tensor.to(torch.int32)
    return tensor.to(torch.float32) if tensor.dtype is torch.float64 else tensor


def _normal_numbers(tensor: Tensor) -> Tensor:
    """Data of the tensor's type that no host has sent; integers are zero."""
    if not tensor.is_floating_point():
        return torch.zeros_like(tensor)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(tensor.shape, generator=generator).to(tensor.dtype)
