"""Tensors inside a model that the program wants to see: `Options.anchorTensor`.

An anchor has a short name, the tensor's own name, and an output mode of its own. What
a call leaves in anchored tensors is read with `getAnchoredTensor`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from popple.engine.torch.session import Watched
from popple.errors import suggest
from popple.session import Returned

from .._errors import Error
from .._logging import logger
from .._translate import output_plan
from ..options import Options
from .tensor_names import GRADIENT, UPDATED

__all__ = ["anchors_of", "check_anchors"]

# SDKs before 3.0 had a module around a model to be trained that held it as `model`,
# and their guides name gradients by it: Gradient___model.fc2.bias
# (graphcore/poptorch, branch sdk-release-2.6, docs/user_guide/debugging.py).
_FORMER_WRAPPER = "model."
_MODE_NAMES = {
    Returned.ALL: "ALL",
    Returned.EVERY_N: "EVERYN",
    Returned.FINAL: "FINAL",
    Returned.SUM: "Sum",
}


def anchors_of(
    options: Options, training: bool, weights: Collection[str]
) -> tuple[Watched, ...]:
    """The anchors of a model; those without a mode of their own have the model's.

    `weights` are the names of its parameters.
    """
    anchors: list[Watched] = []
    for short_name, anchor in options.anchored_tensors.items():
        given, has_models_mode, mode, period = anchor
        name = _spell_as_now(given, weights) if training else given
        chosen = None if has_models_mode else (mode, period)
        plan = output_plan(options, training, chosen)
        weight = name.removeprefix(UPDATED) if name.startswith(UPDATED) else ""
        anchors.append(Watched(short_name, name, plan, weight))
    return tuple(anchors)


def _spell_as_now(name: str, weights: Collection[str]) -> str:
    """The name of a tensor today, where an SDK before 3.0 named it otherwise."""
    kind = next((kind for kind in (GRADIENT, UPDATED) if name.startswith(kind)), "")
    weight = name.removeprefix(kind)
    bare = weight.removeprefix(_FORMER_WRAPPER)
    return kind + bare if weight not in weights and bare in weights else name


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
