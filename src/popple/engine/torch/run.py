"""Engines: micro-batches, replicas, gradient accumulation and updates round a Replay.

Weights, buffers and optimiser state are the device's own copies. All replicas hold
equal weights, so one copy serves them; buffers may differ and can be held per replica.
Outputs are yielded as micro-batches finish; the update of a group of micro-batches is
over when the outputs of its last one are yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from popple.engine.torch.cuda_graphs import CudaGraphs
from popple.engine.torch.replay import Replay, below_autograd
from popple.engine.torch.updates.gradients import (
    add_to_total,
    scale_gradients,
    start_total,
)
from popple.engine.torch.updates.loss_scale import LossScale
from popple.engine.torch.updates.rates import DeviceRates
from popple.engine.torch.updates.update import Slots, UpdateRule, apply_update
from popple.session import Repetition

Outputs = list[Tensor]
MicroBatches = Iterator[Sequence[Tensor]]
Update = Callable[[UpdateRule, dict[str, Tensor], dict[str, Tensor], Slots], None]


@dataclass
class DeviceMemory:
    """The device's own tensors; `buffers` holds one dict per replica.

    `loss_scale` is there if the step takes one, as its last argument.
    """

    weights: dict[str, Tensor]
    buffers: list[dict[str, Tensor]]
    state: Slots = field(default_factory=dict[str, dict[str, Tensor]])
    loss_scale: LossScale | None = None

    def arguments(self, replica: int) -> list[Tensor]:
        """Weights, then buffers, as the step takes them."""
        # One set of buffers serves all replicas, or each has its own.
        held = self.buffers[replica % len(self.buffers)]
        return [*self.weights.values(), *held.values()]


class InferenceEngine:
    """Runs a forward step on every micro-batch; on a GPU by `graphs`, if given."""

    def __init__(
        self,
        step: Replay,
        num_outputs: int,
        repetition: Repetition,
        graphs: CudaGraphs | None = None,
    ) -> None:
        self._step = step
        self._num_outputs = num_outputs
        self._repetition = repetition
        self._graphs = graphs

    def run(self, memory: DeviceMemory, batches: MicroBatches) -> Iterator[Outputs]:
        """Yield the outputs of each micro-batch, in order."""
        states = [memory.arguments(r) for r in range(self._repetition.replicas)]
        for index, batch in enumerate(batches):
            replica = index % len(states)
            with torch.no_grad(), below_autograd():
                call = partial(self._call, states[replica])
                results = _run(self._graphs, (id(memory), replica), call, batch)
            yield results[: self._num_outputs]

    def _call(self, state: list[Tensor], *batch: Tensor) -> list[Any]:
        return self._step([*state, *batch])


class TrainingEngine:
    """Runs forward and backward on micro-batches and updates after each group.

    On a GPU it does so by `graphs`, if given. Where every micro-batch is an update, the
    update is part of the graph.
    """

    def __init__(
        self,
        step: Replay,
        num_outputs: int,
        trainable: tuple[str, ...],
        repetition: Repetition,
        reduce_gradients: Callable[[list[Tensor]], None] | None = None,
        update: Update = apply_update,
        graphs: CudaGraphs | None = None,
    ) -> None:
        self._step = step
        self._num_outputs = num_outputs
        self._trainable = trainable
        self._repetition = repetition
        self._reduce = reduce_gradients
        self._apply = update
        self._graphs = graphs
        self._rates = DeviceRates()

    def run(
        self, memory: DeviceMemory, rule: UpdateRule, batches: MicroBatches
    ) -> Iterator[Outputs]:
        """Yield the outputs of each micro-batch; weights change after each group."""
        if self._owns_gradients or self._reads_gradients(memory):
            return self._run_groups(memory, rule, batches)
        return self._run_whole(memory, rule, batches)

    def _run_whole(
        self, memory: DeviceMemory, rule: UpdateRule, batches: MicroBatches
    ) -> Iterator[Outputs]:
        """Each micro-batch is an update, and that is part of the step."""
        state = memory.arguments(0)
        followed = rule if self._graphs is None else self._rates.follow(rule)
        for batch in batches:
            # Some kernels keep what their backward needs only with gradients enabled.
            with torch.enable_grad(), below_autograd():
                scale = _scale_arguments(memory, rule)
                value = memory.loss_scale.value if memory.loss_scale else 1.0
                call = partial(self._update_step, memory, followed, state, scale)
                # Numbers are baked into a captured graph, so the loss scale and all
                # settings but the rates are part of its key.
                key = (id(memory), value, self._rates.settings)
                results = _run(self._graphs, key, call, batch)
            yield results[: self._num_outputs]

    def _update_step(
        self,
        memory: DeviceMemory,
        rule: UpdateRule,
        state: list[Tensor],
        scale: list[Tensor],
        *batch: Tensor,
    ) -> list[Any]:
        results = self._step([*state, *batch, *scale])
        gradients = results[self._num_outputs :][: len(self._trainable)]
        self._update(memory, rule, gradients)
        return results[: self._num_outputs]

    def _run_groups(
        self, memory: DeviceMemory, rule: UpdateRule, batches: MicroBatches
    ) -> Iterator[Outputs]:
        """Gradients are kept for an update after several micro-batches."""
        repetition = self._repetition
        states = [memory.arguments(r) for r in range(repetition.replicas)]
        group = repetition.accumulation * repetition.replicas
        followed = rule if self._graphs is None else self._rates.follow(rule)
        total: list[Tensor | None] = []
        for index, batch in enumerate(batches):
            position, replica = index % group, index % len(states)
            with torch.enable_grad(), below_autograd():
                scale = _scale_arguments(memory, rule)
                call = partial(self._gradient_step, states[replica], scale)
                results = _run(self._graphs, (id(memory), replica), call, batch)
                total = self._accumulate(rule, total, results, position)
                self._count_gradients(memory, results)
                if position == group - 1:
                    self._update(memory, followed, total)
            yield results[: self._num_outputs]

    def _gradient_step(
        self, state: list[Tensor], scale: list[Tensor], *batch: Tensor
    ) -> list[Any]:
        return self._step([*state, *batch, *scale])

    def _reads_gradients(self, memory: DeviceMemory) -> bool:
        """Whether the host looks at gradients after each micro-batch."""
        scale = memory.loss_scale
        return scale is not None and scale.automatic is not None

    def _accumulate(
        self,
        rule: UpdateRule,
        total: list[Tensor | None],
        results: list[Any],
        position: int,
    ) -> list[Tensor | None]:
        """The total with the gradients of one more micro-batch."""
        gradients = results[self._num_outputs :][: len(self._trainable)]
        # A single micro-batch needs no accumulator: its gradients are used as they are.
        if not self._owns_gradients:
            return gradients
        repetition = self._repetition
        if position == 0:
            # Without accumulation there is no accumulator, only a sum over replicas.
            dtype = rule.accumulator_type if repetition.accumulation > 1 else None
            return start_total(gradients, dtype)
        is_running_mean = repetition.is_mean and repetition.is_running_mean
        add_to_total(
            total, gradients, num_before=position, is_running_mean=is_running_mean
        )
        return total

    def _count_gradients(self, memory: DeviceMemory, results: list[Any]) -> None:
        """Note the share of large gradients, if the step returns it."""
        shares = results[self._num_outputs + len(self._trainable) :]
        if memory.loss_scale is not None and shares:
            # A graph would overwrite it.
            memory.loss_scale.count(shares[0].clone())

    @property
    def _owns_gradients(self) -> bool:
        return self._repetition.micro_batches_per_update > 1

    def _update(
        self, memory: DeviceMemory, rule: UpdateRule, total: list[Tensor | None]
    ) -> None:
        gradients = {
            name: tensor
            for name, tensor in zip(self._trainable, total, strict=True)
            if tensor is not None
        }
        if not gradients:
            return
        if self._reduce is not None:
            # Across processes before scaling: `share` counts the micro-batches of all
            # of them.
            self._reduce(list(gradients.values()))
        factor, loss_scale = self._repetition.share, memory.loss_scale
        if loss_scale is not None:
            factor /= loss_scale.value
        if factor != 1:
            values = list(gradients.values())
            values = scale_gradients(values, factor, is_owned=self._owns_gradients)
            gradients = dict(zip(gradients, values, strict=True))
        self._apply(rule, memory.weights, gradients, memory.state)
        if loss_scale is not None:
            loss_scale.adapt()


def _scale_arguments(memory: DeviceMemory, rule: UpdateRule) -> list[Tensor]:
    """The loss scale, if the step takes one."""
    if memory.loss_scale is None:
        return []
    return [memory.loss_scale.argument_for(rule.loss_scaling)]


def _run(
    graphs: CudaGraphs | None,
    key: Hashable,
    call: Callable[..., list[Any]],
    batch: Sequence[Tensor],
) -> list[Any]:
    return call(*batch) if graphs is None else graphs.run(key, call, batch)
