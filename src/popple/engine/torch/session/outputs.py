"""Collect outputs and watched tensors (anchors) of the micro-batches of a call.

Both are fed as micro-batches finish, in the order of `BatchPlan.micro_batches`; only
what is returned is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from popple.session import MicroBatch, OutputPlan, Returned


class OutputCollector:
    """Takes one output's tensors as micro-batches finish and gives the result."""

    def __init__(self, plan: OutputPlan) -> None:
        self._plan = plan
        self._pieces: list[Tensor] = []
        self._sums: dict[int, Tensor] = {}

    def add(self, place: MicroBatch, output: Tensor) -> None:
        """Take the output of the micro-batch at `place`."""
        if not self._plan.is_returned(place):
            return
        if self._plan.mode is not Returned.SUM:
            self._pieces.append(output)
        elif place.replica in self._sums:
            self._sums[place.replica] = self._sums[place.replica] + output
        else:
            self._sums[place.replica] = output

    def result(self) -> Tensor:
        """The pieces joined on dimension 0; a 0-d output becomes a vector."""
        pieces = self._pieces or [self._sums[r] for r in sorted(self._sums)]
        if len(pieces) != self._plan.factor:
            raise ValueError(
                f"expected {self._plan.factor} pieces but got {len(pieces)}"
            )
        if len(pieces) == 1:
            return pieces[0]
        return torch.stack(pieces) if pieces[0].dim() == 0 else torch.cat(pieces)


@dataclass(frozen=True)
class Watched:
    """A tensor that a program wants to see besides its outputs.

    It is kept under `key` whenever `plan` says. What it is called inside the step is
    `name`; a `weight` is read from memory after its update instead.
    """

    key: str
    name: str
    plan: OutputPlan
    weight: str = ""


class WatchedReader:
    """Takes the watched tensors of one call as micro-batches finish.

    `exposed` names the tensors the step returns besides its outputs, `weights` gives
    the device's weights of a replica, and `settings` are the optimiser's tensors.
    Gradients are those of the scaled loss.
    """

    def __init__(
        self,
        watched: Iterable[Watched],
        exposed: Sequence[str],
        weights: Callable[[int], Mapping[str, Tensor]],
        settings: Mapping[str, Tensor],
    ) -> None:
        self._collectors = [(each, OutputCollector(each.plan)) for each in watched]
        self._positions = {name: index for index, name in enumerate(exposed)}
        self._weights = weights
        self._settings = settings

    def add(self, place: MicroBatch, exposed: list[Tensor]) -> None:
        """Take what the step at `place` exposed."""
        for each, collector in self._collectors:
            if each.plan.is_returned(place):
                collector.add(place, self._value(each, place, exposed))

    def _value(
        self, watched: Watched, place: MicroBatch, exposed: list[Tensor]
    ) -> Tensor:
        if watched.weight:
            return self._weights(place.replica)[watched.weight].clone()
        position = self._positions.get(watched.name)
        if position is None:
            return self._settings[watched.name].clone()
        return exposed[position]

    def results(self) -> dict[str, Tensor]:
        """The watched tensors of the call by key.

        Those whose return period is longer than the call are not there.
        """
        return {
            each.key: collector.result()
            for each, collector in self._collectors
            if each.plan.factor
        }
