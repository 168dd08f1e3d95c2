"""Tensors inside a model that the program wants to see: `Options.anchorTensor`.

An anchor has a short name, the tensor's own name, and an output mode of its own. What
a call leaves in anchored tensors is read with `getAnchoredTensor`.
"""

from __future__ import annotations

from collections.abc import Iterable

from popple.engine.torch.session import Watched
from popple.errors import suggest
from popple.session import Returned

from .._errors import Error
from .._logging import logger
from .._translate import output_plan
from ..options import Options
from .tensor_names import UPDATED

__all__ = ["anchors_of", "check_anchors"]

_MODE_NAMES = {
    Returned.ALL: "ALL",
    Returned.EVERY_N: "EVERYN",
    Returned.FINAL: "FINAL",
    Returned.SUM: "Sum",
}


def anchors_of(options: Options, training: bool) -> tuple[Watched, ...]:
    """The anchors of a model; those without a mode of their own have the model's."""
    anchors: list[Watched] = []
    for short_name, anchor in options.anchored_tensors.items():
        name, has_models_mode, mode, period = anchor
        chosen = None if has_models_mode else (mode, period)
        plan = output_plan(options, training, chosen)
        weight = name.removeprefix(UPDATED) if name.startswith(UPDATED) else ""
        anchors.append(Watched(short_name, name, plan, weight))
    return tuple(anchors)


def check_anchors(anchors: Iterable[Watched], known: Iterable[str]) -> None:
    """Error for an anchor on a tensor that is not there; the others are logged."""
    names = set(known)
    for anchor in anchors:
        if anchor.name not in names:
            raise Error(
                f"There is no tensor {anchor.name!r} to anchor as "
                f"{anchor.key!r}. {suggest(anchor.name, names)} "
                "getTensorNames() of a compiled model lists all of them."
            )
        mode = _MODE_NAMES[anchor.plan.mode]
        logger.debug("Anchor %s %s/%d", anchor.name, mode, anchor.plan.period)
