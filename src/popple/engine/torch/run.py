"""Engines: micro-batches, replicas, gradient accumulation and updates round a Replay.

Weights, buffers and optimiser state are the device's own copies. All replicas hold
equal weights, so one copy serves them; buffers may differ and can be held per replica.
Outputs are yielded as micro-batches finish; the update of a group of micro-batches is
over when the outputs of its last one are yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from popple.engine.torch.cuda_graphs import CudaGraphs
from popple.engine.torch.replay import Replay, below_autograd
from popple.engine.torch.updates.gradients import (
    add_in_pairs,
    add_to_total,
    join_pairs,
    restart_total,
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
OnReplica = Callable[[int], None]
"""Called with the number of a replica before each of its micro-batches."""


def _no_preparation(replica: int) -> None:
    pass


@dataclass
class DeviceMemory:
    """The device's own tensors; `buffers` holds one dict per replica.

    `make_state` gives the optimiser's state before the first update. `loss_scale` is
    there if the step takes one, as its last argument.
    """

    weights: dict[str, Tensor]
    buffers: list[dict[str, Tensor]]
    make_state: Callable[[], Slots] = dict[str, dict[str, Tensor]]
    loss_scale: LossScale | None = None
    _state: Slots | None = None

    @property
    def has_state(self) -> bool:
        """Whether the optimiser's state has been made."""
        return self._state is not None

    @property
    def state(self) -> Slots:
        """The optimiser's state, made by the first update or whoever else asks."""
        if self._state is None:
            self._state = self.make_state()
        return self._state

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
        on_replica: OnReplica = _no_preparation,
    ) -> None:
        self._step = step
        self._num_outputs = num_outputs
        self._repetition = repetition
        self._graphs = graphs
        self._on_replica = on_replica

    def run(self, memory: DeviceMemory, batches: MicroBatches) -> Iterator[Outputs]:
        """Yield the outputs of each micro-batch, in order."""
        states = [memory.arguments(r) for r in range(self._repetition.replicas)]
        for index, batch in enumerate(batches):
            replica = index % len(states)
            self._on_replica(replica)
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
        reduce_gradients: Callable[[list[Tensor]], list[Tensor]] | None = None,
        update: Update = apply_update,
        graphs: CudaGraphs | None = None,
        on_replica: OnReplica = _no_preparation,
    ) -> None:
        self._step = step
        self._num_outputs = num_outputs
        self._on_replica = on_replica
        self._trainable = trainable
        self._repetition = repetition
        self._reduce = reduce_gradients
        self._apply = update
        self._graphs = graphs
        self._rates = DeviceRates()
        self._totals: dict[torch.dtype | None, list[Tensor | None]] = {}

    def run(
        self, memory: DeviceMemory, rule: UpdateRule, batches: MicroBatches
    ) -> Iterator[Outputs]:
        """Yield the outputs of each micro-batch; weights change after each group."""
        if self._reads_gradients(memory):
            return self._run_groups(memory, rule, batches)
        if not self._owns_gradients:
            return self._run_whole(memory, rule, batches)
        if self._can_capture_sums:
            return self._run_captured(memory, rule, batches)
        return self._run_groups(memory, rule, batches)

    @property
    def _can_capture_sums(self) -> bool:
        """Whether all that happens between two updates can be part of CUDA graphs.

        Several replicas are added in pairs and processes by the host; a running mean
        would need a graph for each micro-batch.
        """
        repetition = self._repetition
        is_running_mean = repetition.is_mean and repetition.is_running_mean
        is_alone = repetition.replicas == 1 and self._reduce is None
        return self._graphs is not None and is_alone and not is_running_mean

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
                call = partial(self._update_step, memory, followed, state, scale)
                results = _run(self._graphs, self._key(memory), call, batch)
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

    def _run_captured(
        self, memory: DeviceMemory, rule: UpdateRule, batches: MicroBatches
    ) -> Iterator[Outputs]:
        """Gradients are added up, and weights updated, where they are made."""
        state, size = memory.arguments(0), self._repetition.accumulation
        followed = self._rates.follow(rule)
        for index, batch in enumerate(batches):
            position = index % size
            self._on_replica(0)
            with torch.enable_grad(), below_autograd():
                scale = _scale_arguments(memory, rule)
                place = (position == 0, position == size - 1)
                call = partial(self._sum_step, memory, followed, state, scale, place)
                key = (*self._key(memory), place, rule.accumulator_type)
                results = _run(self._graphs, key, call, batch)
            yield results[: self._num_outputs]

    def _sum_step(
        self,
        memory: DeviceMemory,
        rule: UpdateRule,
        state: list[Tensor],
        scale: list[Tensor],
        place: tuple[bool, bool],
        *batch: Tensor,
    ) -> list[Any]:
        is_first, is_last = place
        results = self._step([*state, *batch, *scale])
        gradients = results[self._num_outputs :][: len(self._trainable)]
        total = self._totals.get(rule.accumulator_type)
        if total is None:
            # The first run is never captured, so this is memory that stays.
            total = start_total(gradients, rule.accumulator_type)
            self._totals[rule.accumulator_type] = total
        elif is_first:
            restart_total(total, gradients)
        else:
            add_to_total(total, gradients, num_before=1, is_running_mean=False)
        if is_last:
            self._update(memory, rule, total)
        return results[: self._num_outputs]

    def _key(self, memory: DeviceMemory) -> tuple[Hashable, ...]:
        """What a captured update depends on.

        Numbers are baked into a captured graph, so the loss scale and all settings but
        the rates are part of its key.
        """
        value = memory.loss_scale.value if memory.loss_scale else 1.0
        return id(memory), value, self._rates.settings

    def _run_groups(
        self, memory: DeviceMemory, rule: UpdateRule, batches: MicroBatches
    ) -> Iterator[Outputs]:
        """Gradients are kept for an update after several micro-batches."""
        repetition = self._repetition
        states = [memory.arguments(r) for r in range(repetition.replicas)]
        group = repetition.accumulation * repetition.replicas
        followed = rule if self._graphs is None else self._rates.follow(rule)
        total: list[Tensor | None] = []
        partials: list[list[Tensor | None]] = []
        for index, batch in enumerate(batches):
            position, replica = index % group, index % len(states)
            self._on_replica(replica)
            with torch.enable_grad(), below_autograd():
                scale = _scale_arguments(memory, rule)
                call = partial(self._gradient_step, states[replica], scale)
                results = _run(self._graphs, (id(memory), replica), call, batch)
                total = self._accumulate(rule, total, results, position, partials)
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
        partials: list[list[Tensor | None]],
    ) -> list[Tensor | None]:
        """The total with the gradients of one more micro-batch."""
        gradients = results[self._num_outputs :][: len(self._trainable)]
        # A single micro-batch needs no accumulator: its gradients are used as they are.
        if not self._owns_gradients:
            return gradients
        repetition = self._repetition
        is_running_mean = repetition.is_mean and repetition.is_running_mean
        if repetition.accumulation == 1 and not is_running_mean:
            add_in_pairs(partials, gradients, position)
            is_last = position == repetition.replicas - 1
            return join_pairs(partials) if is_last else []
        if position == 0:
            # Without accumulation there is no accumulator, only a sum over replicas.
            dtype = rule.accumulator_type if repetition.accumulation > 1 else None
            return start_total(gradients, dtype)
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
            values = self._reduce(list(gradients.values()))
            gradients = dict(zip(gradients, values, strict=True))
        factor, loss_scale = self._repetition.share, memory.loss_scale
        if loss_scale is not None:
            factor /= loss_scale.value
        if factor != 1:
            values = list(gradients.values())
            values = scale_gradients(values, factor, is_owned=self._owns_gradients)
            gradients = dict(zip(gradients, values, strict=True))
        self._apply(rule, memory.weights, gradients, memory.state)
        if loss_scale is not None:
            loss_scale.adapt(self._mean_over_processes)

    def _mean_over_processes(self, share: Tensor) -> Tensor:
        if self._reduce is None:
            return share
        (total,) = self._reduce([share.view(1)])
        return total / self._repetition.processes


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
