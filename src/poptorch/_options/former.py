"""Names of older releases of PopTorch: served under their new ones, or refused.

In: a name that PopTorch 3.4 lacks. Out: what has replaced it, with a line in the log,
or an AttributeError that says what to write instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .._logging import logger

__all__ = ["get_former", "with_former_arguments"]

Setter = TypeVar("Setter", bound=Callable[..., Any])

RENAMED: Mapping[str, str] = {
    "AnchorMode": "OutputMode",
    "Popart": "_Popart",
    "accumulationReductionType": "accumulationAndReplicationReductionType",
    "anchorMode": "outputMode",
    "anchor_mode": "output_mode",
    "anchor_return_period": "output_return_period",
    "defaultAnchorMode": "defaultOutputMode",
    "runningVarianceAlwaysFloat": "runningStatisticsAlwaysFloat",
}
_AUTOCAST = "convert layers with .half() or .float()"
GONE: Mapping[str, str] = {
    "IPU": "use poptorch.Block or poptorch.BeginBlock",
    "IPUContext": "wrap the model with poptorch.trainingModel or inferenceModel",
    "IPUScope": "wrap the model with poptorch.trainingModel or inferenceModel",
    "MultiConvPartialsType": "use torch.half or torch.float",
    "Policy": _AUTOCAST,
    "autocast": _AUTOCAST,
    "autocastEnabled": _AUTOCAST,
    "autocastPolicy": _AUTOCAST,
}

_SAID: set[str] = set()


def get_former(owner: object, name: str, otherwise: str) -> Any:
    """What `owner` calls a name of an older release now.

    AttributeError if nothing has replaced it, or, with the text `otherwise`, if it is
    no such name.
    """
    if name in GONE:
        otherwise = f"{name} is of an older release and gone: {GONE[name]}."
    elif name in RENAMED and hasattr(owner, RENAMED[name]):
        return getattr(owner, _renamed(name))
    raise AttributeError(otherwise, name=name)


def _renamed(name: str) -> str:
    """The new name, which is said once."""
    new = RENAMED.get(name, name)
    if new != name and name not in _SAID:
        _SAID.add(name)
        logger.warning("[Deprecated] %s is called %s now.", name, new)
    return new


def with_former_arguments(setter: Setter) -> Setter:
    """Decorator: keywords of older releases are taken for the new ones."""

    @functools.wraps(setter)
    def renaming(*args: Any, **kwargs: Any) -> Any:
        given = {_renamed(name): value for name, value in kwargs.items()}
        return setter(*args, **given)

    return renaming  # pyright: ignore[reportReturnType]
