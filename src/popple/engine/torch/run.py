"""Runs: micro-batches, replicas, accumulation and iterations as loops round a Replay.

Weights, buffers and optimiser state are the device's own copies. All replicas hold
equal weights, so one copy serves them; buffers may differ and can be held per replica.
Outputs are yielded as micro-batches finish; the update of a group of micro-batches is
over when the outputs of its last one are yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from popple.engine.torch.replay import Replay, below_autograd
from popple.engine.torch.update import Slots, UpdateRule, apply_update
from popple.errors import UsageError

Outputs = list[Tensor]
Gradients = list[Tensor | None]
MicroBatches = Iterator[Sequence[Tensor]]


@dataclass(frozen=True)
class Repetition:
    """How often a step runs in one call: iterations x accumulation x replicas."""

    device_iterations: int = 1
    accumulation: int = 1
    replicas: int = 1
    processes: int = 1
    is_mean: bool = True

    def __post_init__(self) -> None:
        counts = ("device_iterations", "accumulation", "replicas", "processes")
        for name in counts:
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1.")

    @property
    def micro_batches_per_update(self) -> int:
        """Micro-batches whose gradients make one update, on all processes."""
        return self.accumulation * self.replicas * self.processes


@dataclass
class DeviceMemory:
    """The device's own tensors; `buffers` holds one dict per replica."""

    weights: dict[str, Tensor]
    buffers: list[dict[str, Tensor]]
    state: Slots = field(default_factory=dict[str, dict[str, Tensor]])

    def arguments(self, replica: int) -> list[Tensor]:
        """Weights, then buffers, as the step takes them."""
        held = self.buffers[replica % len(self.buffers)]
        return [*self.weights.values(), *held.values()]


class InferenceEngine:
    """Runs a forward step on every micro-batch."""

    def __init__(self, step: Replay, num_outputs: int, repetition: Repetition) -> None:
        self._step = step
        self._num_outputs = num_outputs
        self._repetition = repetition

    @torch.no_grad()
    def run(self, memory: DeviceMemory, batches: MicroBatches) -> Iterator[Outputs]:
        """Yield the outputs of each micro-batch, in order."""
        states = [memory.arguments(r) for r in range(self._repetition.replicas)]
        for index, batch in enumerate(batches):
            state = states[index % len(states)]
            with below_autograd():
                results = self._step([*state, *batch])
            yield results[: self._num_outputs]


class TrainingEngine:
    """Runs forward and backward on micro-batches and updates after each group."""

    def __init__(
        self,
        step: Replay,
        num_outputs: int,
        trainable: tuple[str, ...],
        repetition: Repetition,
        reduce_gradients: Callable[[list[Tensor]], None] | None = None,
    ) -> None:
        self._step = step
        self._num_outputs = num_outputs
        self._trainable = trainable
        self._repetition = repetition
        self._reduce = reduce_gradients

    @torch.no_grad()
    def run(
        self, memory: DeviceMemory, rule: UpdateRule, batches: MicroBatches
    ) -> Iterator[Outputs]:
        """Yield the outputs of each micro-batch; weights change after each group."""
        repetition = self._repetition
        states = [memory.arguments(r) for r in range(repetition.replicas)]
        group = repetition.accumulation * repetition.replicas
        total: Gradients = []
        for index, batch in enumerate(batches):
            position = index % group
            with below_autograd():
                results = self._step([*states[index % len(states)], *batch])
                gradients = results[self._num_outputs :]
                if position == 0:
                    total = _owned(gradients) if self._changes_gradients else gradients
                else:
                    _accumulate(total, gradients)
                if position == group - 1:
                    self._update(memory, rule, total)
            yield results[: self._num_outputs]

    @property
    def _changes_gradients(self) -> bool:
        return self._repetition.micro_batches_per_update > 1

    def _update(self, memory: DeviceMemory, rule: UpdateRule, total: Gradients) -> None:
        gradients = {
            name: tensor
            for name, tensor in zip(self._trainable, total, strict=True)
            if tensor is not None
        }
        values = list(gradients.values())
        if self._reduce is not None:
            self._reduce(values)
        if self._repetition.is_mean and self._changes_gradients:
            share = 1.0 / self._repetition.micro_batches_per_update
            torch._foreach_mul_(values, share)
        apply_update(rule, memory.weights, gradients, memory.state)


def _owned(gradients: Gradients) -> Gradients:
    """Copies to write to: a gradient may be a view, or one element repeated."""
    return [
        g if g is None else g.clone(memory_format=torch.contiguous_format)
        for g in gradients
    ]


def _accumulate(total: Gradients, gradients: Gradients) -> None:
    sums = [t for t in total if t is not None]
    torch._foreach_add_(sums, [g for g in gradients if g is not None])
