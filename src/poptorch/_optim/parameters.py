"""The numbers of an optimiser as named tensors of the device, `ipu_param`.

A variable setting is a tensor per weight, `learningRate___specific___fc.weight`; what
is constant is compiled in and has none. Loading such tensors changes the settings of
the weights they name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from .._logging import logger
from .description import Description, Setting, Settings
from .forms import Context, Values, form_of
from .rule import Names

__all__ = ["encode", "load"]

LOSS_SCALING = "lossScaling_FLOAT"


def encode(
    description: Description, names: Names, share: float
) -> dict[str, torch.Tensor]:
    """The variable numbers of an optimiser as named tensors."""
    result: Values = {}
    for number, group in enumerate(names):
        constants = _constants(description, number)
        values = _values(description, number, share)
        variable = {k: v for k, v in values.items() if k not in constants}
        for weight in group:
            result |= {_name(k, weight): v for k, v in variable.items()}
    if not description.loss_scaling.is_const:
        result[LOSS_SCALING] = description.loss_scaling.value
    return {name: torch.tensor(value) for name, value in result.items()}


def _constants(description: Description, number: int) -> set[str]:
    """Numbers of a group that depend on nothing variable."""
    settings = description.groups[number]
    known = {**settings, "lossScaling": description.loss_scaling}
    return {
        name
        for name, parts in form_of(description).parts.items()
        if all(known[part].is_const for part in parts)
    }


def load(
    description: Description,
    names: Names,
    share: float,
    tensors: Mapping[str, torch.Tensor],
) -> tuple[Description, Names]:
    """The optimiser with these numbers; missing ones stay as they are, with a warning.

    Weights with equal settings are a group.
    """
    changed = _find_changes(encode(description, names, share), tensors)
    if not changed:
        return description, names
    after = _with_loss_scaling(description, changed.pop(LOSS_SCALING, None))
    groups: dict[tuple[tuple[str, Setting], ...], list[str]] = {}
    for number, group in enumerate(names):
        held = _values(description, number, share)
        for weight in group:
            own = {k: changed.get(_name(k, weight), v) for k, v in held.items()}
            settings = after.groups[number]
            if own != held or after is not description:
                settings = _settings_for(own, after, number, share)
            groups.setdefault(tuple(settings.items()), []).append(weight)
    return (
        replace(after, groups=tuple(dict(settings) for settings in groups)),
        tuple(tuple(group) for group in groups.values()),
    )


def _name(number: str, weight: str) -> str:
    return f"{number}___specific___{weight}"


def _find_changes(
    held: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor]
) -> Values:
    """Numbers that are given and differ from those held."""
    for name in held.keys() - given.keys():
        logger.warning("The optimizer state lacks parameter %s: it stays.", name)
    numbers = {name: given[name].item() for name in held if name in given}
    return {n: float(v) for n, v in numbers.items() if v != held[n].item()}


def _values(description: Description, number: int, share: float) -> Values:
    """All numbers of a group as the device writes them."""
    context = Context(description.loss_scaling, share)
    return form_of(description).compose(_plain(description.groups[number]), context)


def _settings_for(
    values: Values, description: Description, number: int, share: float
) -> dict[str, Setting]:
    """The settings of a group with which the device would write these numbers."""
    settings = description.groups[number]
    context = Context(description.loss_scaling, share)
    split = form_of(description).split(values, _plain(settings), context)
    return {k: replace(s, value=split.get(k, s.value)) for k, s in settings.items()}


def _with_loss_scaling(description: Description, value: float | None) -> Description:
    """The description with another loss scaling; SGD2's velocity is scaled by it."""
    if value is None:
        return description
    scaling = replace(description.loss_scaling, value=value)
    groups = description.groups
    if description.kind == "SGD2":
        groups = tuple({**group, "velocityScaling": scaling} for group in groups)
    defaults = {**description.defaults, "lossScaling": scaling}
    return replace(description, defaults=defaults, groups=groups)


def _plain(settings: Settings) -> dict[str, float]:
    return {name: setting.value for name, setting in settings.items()}
