"""Tensors inside a model that the program wants to see: `Options.anchorTensor`.

An anchor has a short name, the tensor's own name, and an output mode of its own. What
a call leaves in anchored tensors is read with `getAnchoredTensor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch

from popple.errors import suggest

from .._batching import MicroBatch, OutputCollector, OutputPlan
from .._errors import Error
from .._logging import logger
from .._translate import output_plan
from ..enums import OutputMode
from ..options import Options
from .tensor_names import UPDATED

__all__ = [
    "FINAL_LOSS_SCALE",
    "Anchor",
    "AnchorReader",
    "anchors_of",
    "check_anchors",
]

FINAL_LOSS_SCALE = "finalLossScale"
"""The loss scale as a step used it."""

_MODE_NAMES = {
    OutputMode.All: "ALL",
    OutputMode.EveryN: "EVERYN",
    OutputMode.Final: "FINAL",
    OutputMode.Sum: "Sum",
}


@dataclass(frozen=True)
class Anchor:
    """A tensor to keep: the program's name for it, its own name, and when."""

    short_name: str
    name: str
    plan: OutputPlan

    @property
    def updated_weight(self) -> str | None:
        """The weight, if the anchor is a weight after its update."""
        is_update = self.name.startswith(UPDATED)
        return self.name.removeprefix(UPDATED) if is_update else None


def anchors_of(options: Options, training: bool) -> tuple[Anchor, ...]:
    """The anchors of a model; those without a mode of their own have the model's."""
    anchors: list[Anchor] = []
    for short_name, anchor in options.anchored_tensors.items():
        name, has_models_mode, mode, period = anchor
        chosen = None if has_models_mode else (mode, period)
        anchors.append(Anchor(short_name, name, output_plan(options, training, chosen)))
    return tuple(anchors)


def check_anchors(anchors: Iterable[Anchor], known: Iterable[str]) -> None:
    """Error for an anchor on a tensor that is not there; the others are logged."""
    names = set(known)
    for anchor in anchors:
        if anchor.name not in names:
            raise Error(
                f"There is no tensor {anchor.name!r} to anchor as "
                f"{anchor.short_name!r}. {suggest(anchor.name, names)} "
                "getTensorNames() of a compiled model lists all of them."
            )
        mode = _MODE_NAMES[anchor.plan.mode]
        logger.debug("Anchor %s %s/%d", anchor.name, mode, anchor.plan.period)


class AnchorReader:
    """Takes the anchored tensors of one call as micro-batches finish.

    `exposed` names the tensors the step returns besides its outputs, `weights` gives
    the device's weights of a replica, and `settings` are the optimiser's tensors.
    Gradients are those of the scaled loss.
    """

    def __init__(
        self,
        anchors: Iterable[Anchor],
        exposed: tuple[str, ...],
        weights: Callable[[int], Mapping[str, torch.Tensor]],
        settings: Mapping[str, torch.Tensor],
    ) -> None:
        self._collectors = [(a, OutputCollector(a.plan)) for a in anchors]
        self._positions = {name: index for index, name in enumerate(exposed)}
        self._weights = weights
        self._settings = settings

    def add(self, place: MicroBatch, exposed: list[torch.Tensor]) -> None:
        """Take what the step at `place` exposed."""
        for anchor, collector in self._collectors:
            if anchor.plan.is_returned(place):
                collector.add(place, self._value(anchor, place, exposed))

    def _value(
        self, anchor: Anchor, place: MicroBatch, exposed: list[torch.Tensor]
    ) -> torch.Tensor:
        if (weight := anchor.updated_weight) is not None:
            return self._weights(place.replica)[weight].clone()
        position = self._positions.get(anchor.name)
        if position is None:
            return self._settings[anchor.name].clone()
        return exposed[position]

    def results(self) -> dict[str, torch.Tensor]:
        """The anchored tensors of the call by short name.

        Those whose return period is longer than the call are not there.
        """
        return {
            anchor.short_name: collector.result()
            for anchor, collector in self._collectors
            if anchor.plan.factor
        }
