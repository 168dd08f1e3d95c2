"""Replica groups: weights that differ between groups of replicas.

Replicas are divided into groups; those of a group share a weight. On the host such a
parameter has a first dimension with one entry per group (or per replica), which the
module's forward does not see. The device holds all groups as one tensor: a replica is
given its part of it, and its gradient goes to the same part of the whole gradient.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from popple.engine.torch.replay import Replay
from popple.engine.torch.run import DeviceMemory
from popple.engine.torch.updates.clip import clip_gradients
from popple.engine.torch.updates.update import UpdateRule
from popple.errors import UsageError


class GroupKind(enum.Enum):
    """Which replicas make a group."""

    CONSECUTIVE = "consecutive"
    ORTHOGONAL = "orthogonal"
    ALONE = "alone"


@dataclass(frozen=True)
class ReplicaGrouping:
    """How replicas share one weight, and what the host has of it.

    With `has_all_replicas` the host has an entry per replica, not per group.
    """

    kind: GroupKind
    size: int
    has_all_replicas: bool
    replicas: int

    def __post_init__(self) -> None:
        if self._group_size < 1 or self.replicas % self._group_size:
            raise UsageError(
                f"Groups of {self.size} replicas do not divide {self.replicas} "
                "replicas:",
                remedy="choose a factor of replicationFactor.",
            )

    @property
    def _group_size(self) -> int:
        return 1 if self.kind is GroupKind.ALONE else self.size

    @property
    def num_groups(self) -> int:
        """Different values of the weight."""
        return self.replicas // self._group_size

    def group_of(self, replica: int) -> int:
        """The group a replica belongs to."""
        if self.kind is GroupKind.ORTHOGONAL:
            return replica % self.num_groups
        return replica // self._group_size

    @property
    def rows(self) -> list[int]:
        """The group that each entry of the host's first dimension is of."""
        if self.has_all_replicas:
            return [self.group_of(replica) for replica in range(self.replicas)]
        return list(range(self.num_groups))

    def to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        """One entry per group."""
        return tensor[[self.rows.index(group) for group in range(self.num_groups)]]

    def to_host(self, tensor: torch.Tensor) -> torch.Tensor:
        """One entry per row of the host's tensor."""
        return tensor[self.rows]


Groupings = Mapping[str, ReplicaGrouping]
Update = Callable[..., None]


@dataclass
class GroupedMemory(DeviceMemory):
    """Device memory in which some weights have one entry per group of replicas.

    Groups are made of the replicas of all processes; `first` is the number of the first
    one here.
    """

    groupings: Groupings = field(default_factory=dict[str, ReplicaGrouping])
    first: int = 0

    def weights_of(self, replica: int) -> dict[str, torch.Tensor]:
        """The weights as one replica sees them."""
        return {
            name: tensor[self.groupings[name].group_of(self.first + replica)]
            if name in self.groupings
            else tensor
            for name, tensor in self.weights.items()
        }

    def arguments(self, replica: int) -> list[torch.Tensor]:
        """Weights of the replica, then its buffers."""
        held = self.buffers[replica % len(self.buffers)]
        return [*self.weights_of(replica).values(), *held.values()]


def with_whole_gradients(
    replay: Replay,
    num_outputs: int,
    parameters: Sequence[str],
    trainable: Sequence[str],
    groupings: Groupings,
) -> Replay:
    """A step whose gradients of grouped weights are those of all groups.

    Which group a run is of is told by the weight: it is a part of the whole.
    """
    places = [
        (num_outputs + index, parameters.index(name), groupings[name].num_groups)
        for index, name in enumerate(trainable)
        if name in groupings
    ]

    def run(*arguments: torch.Tensor) -> list[Any]:
        results = replay(arguments)
        for result, parameter, num_groups in places:
            if results[result] is not None:
                part = arguments[parameter]
                # Groups lie one behind the other in one tensor. A step takes plain
                # tensors, so there is no other place for the number.
                group = part.storage_offset() // part.numel()
                results[result] = _whole(results[result], group, num_groups)
        return results

    return Replay(run, frozenset())


def _whole(part: torch.Tensor, group: int, num_groups: int) -> torch.Tensor:
    """Zeros for all groups but one."""
    whole = part.new_zeros((num_groups, *part.shape))
    whole[group] = part
    return whole


def with_grouped_update(update: Update, groupings: Groupings) -> Update:
    """An update for which every group of a weight is a weight of its own.

    That matters to formulas with a norm; others work on all groups at once.
    """

    def apply(
        rule: UpdateRule,
        weights: Mapping[str, torch.Tensor],
        gradients: Mapping[str, torch.Tensor],
        state: dict[str, dict[str, torch.Tensor]],
    ) -> None:
        if rule.kind != "lamb":
            update(rule, weights, gradients, state)
            return
        # The norm is that of all weights together, so it is bounded before they are
        # divided.
        if rule.max_grad_norm != float("inf"):
            clipped = clip_gradients(list(gradients.values()), rule.max_grad_norm)
            gradients = dict(zip(gradients, clipped, strict=True))
            rule = replace(rule, max_grad_norm=float("inf"))
        shared = {n: g for n, g in gradients.items() if n not in groupings}
        update(rule, weights, shared, state)
        for name in gradients.keys() - shared.keys():
            _update_groups(update, rule, name, weights, gradients, state)

    return apply


def _update_groups(
    update: Update,
    rule: UpdateRule,
    name: str,
    weights: Mapping[str, torch.Tensor],
    gradients: Mapping[str, torch.Tensor],
    state: dict[str, dict[str, torch.Tensor]],
) -> None:
    step = state["step"][name]
    for group in range(weights[name].shape[0]):
        # All groups of a weight are at the same step: each counts on a copy, the
        # original once.
        counted = step.clone()
        part = {
            slot: {name: counted if slot == "step" else held[name][group]}
            for slot, held in state.items()
        }
        own = {name: weights[name][group]}
        update(rule, own, {name: gradients[name][group]}, part)
    step.add_(1)
