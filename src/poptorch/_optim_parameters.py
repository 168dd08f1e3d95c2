"""The numbers of an optimiser as named tensors of the device, `ipu_param`.

A variable setting is a tensor per weight, `learningRate___specific___fc.weight`; SGD has
products of settings instead. Constants are compiled in and have none. Loading such
tensors changes the settings of the weights they name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch

from ._errors import Error
from ._logging import logger
from ._optim_description import Description, Setting, Settings
from ._optim_rule import Names

__all__ = ["encode", "load"]

LOSS_SCALING = "lossScaling_FLOAT"
_SEPARATOR = "___specific___"


@dataclass(frozen=True)
class _Context:
    """What the products of SGD contain beside the settings of a group.

    `share` is what summed gradients are multiplied by to make their mean.
    """

    loss_scaling: Setting
    share: float


Values = dict[str, float]
Compose = Callable[[Mapping[str, float], _Context], Values]
Split = Callable[[Values, Mapping[str, float], _Context], Values]


def _compose_plain_sgd(s: Mapping[str, float], context: _Context) -> Values:
    rate = s["learningRate"] * (1 - s["dampening"])
    return {
        "scaledLearningRate0": rate * context.share / context.loss_scaling.value,
        "weightDecayScaleFactor0": 1 - rate * s["weightDecay"],
    }


def _split_plain_sgd(v: Values, s: Mapping[str, float], context: _Context) -> Values:
    rate = v["scaledLearningRate0"] * context.loss_scaling.value / context.share
    decay = 1 - v["weightDecayScaleFactor0"]
    if not rate and decay:
        raise Error(
            "A weight cannot decay with a learning rate of 0: give "
            "scaledLearningRate0 or make weightDecayScaleFactor0 1."
        )
    return {
        "learningRate": rate,
        "dampening": 0.0,
        "weightDecay": decay / rate if rate else s["weightDecay"],
    }


def _compose_momentum(number: int) -> Compose:
    def compose(s: Mapping[str, float], context: _Context) -> Values:
        gain = (1 - s["dampening"]) * s["velocityScaling"]
        return {
            "scaledWeightDecay1": gain * s["weightDecay"],
            f"scaledLearningRate{number}": s["learningRate"] / s["velocityScaling"],
            f"scaledMomentum{number}": s["momentum"],
            f"dampeningScaleFactor{number}": gain
            * context.share
            / context.loss_scaling.value,
        }

    return compose


def _split_momentum(number: int) -> Split:
    def split(v: Values, s: Mapping[str, float], context: _Context) -> Values:
        factor = v[f"dampeningScaleFactor{number}"]
        gain = factor * context.loss_scaling.value / context.share
        return {
            "learningRate": v[f"scaledLearningRate{number}"] * s["velocityScaling"],
            "momentum": v[f"scaledMomentum{number}"],
            "dampening": 1 - gain / s["velocityScaling"],
            "weightDecay": v["scaledWeightDecay1"] / gain if gain else 0.0,
        }

    return split


def _compose_renamed(names: Mapping[str, str]) -> Compose:
    return lambda s, context: {new: s[old] for old, new in names.items()}


def _split_renamed(names: Mapping[str, str]) -> Split:
    return lambda v, s, context: {old: v[new] for old, new in names.items()}


@dataclass(frozen=True)
class _Form:
    """How the settings of one kind of optimiser are named on the device.

    `parts` are the settings that each number depends on, `lossScaling` included.
    """

    compose: Compose
    split: Split
    parts: Mapping[str, tuple[str, ...]]


def _renamed(names: Mapping[str, str]) -> _Form:
    parts = {new: (old,) for old, new in names.items()}
    return _Form(_compose_renamed(names), _split_renamed(names), parts)


def _momentum(number: int) -> _Form:
    parts = {
        "scaledWeightDecay1": ("dampening", "weightDecay", "velocityScaling"),
        f"scaledLearningRate{number}": ("learningRate", "velocityScaling"),
        f"scaledMomentum{number}": ("momentum",),
        f"dampeningScaleFactor{number}": (
            "dampening",
            "velocityScaling",
            "lossScaling",
        ),
    }
    return _Form(_compose_momentum(number), _split_momentum(number), parts)


_COMMON = {"learningRate": "learningRate", "weightDecay": "weightDecay"}
_ADAM = _COMMON | {"beta1": "adamBeta1", "beta2": "adamBeta2", "eps": "adamEps"}
_FORMS = {
    "SGD": _Form(
        _compose_plain_sgd,
        _split_plain_sgd,
        {
            "scaledLearningRate0": ("learningRate", "dampening", "lossScaling"),
            "weightDecayScaleFactor0": ("learningRate", "dampening", "weightDecay"),
        },
    ),
    "SGD1": _momentum(1),
    "SGD2": _momentum(2),
    "ADAM": _renamed(_ADAM),
    "ADAMW": _renamed(_ADAM),
    "LAMB": _renamed(_ADAM | {"maxWeightNorm": "maxWeightNorm"}),
    "RMSPROP": _renamed(
        _COMMON
        | {
            "alpha": "adaptiveAlpha",
            "momentum": "adaptiveMomentum",
            "eps": "adaptiveEps",
        }
    ),
}


def _form_of(description: Description) -> _Form:
    is_plain = description.kind in ("SGD1", "SGD2") and not description.has_velocity
    return _FORMS["SGD" if is_plain else description.kind]


def encode(
    description: Description, names: Names, share: float
) -> dict[str, torch.Tensor]:
    """The variable numbers of an optimiser as named tensors."""
    context = _Context(description.loss_scaling, share)
    result: dict[str, float] = {}
    for settings, group in zip(description.groups, names, strict=True):
        values = _variable_values(_form_of(description), settings, context)
        for weight in group:
            result |= {f"{k}{_SEPARATOR}{weight}": v for k, v in values.items()}
    if not description.loss_scaling.is_const:
        result[LOSS_SCALING] = description.loss_scaling.value
    return {name: torch.tensor(value) for name, value in result.items()}


def _variable_values(form: _Form, settings: Settings, context: _Context) -> Values:
    known = {**settings, "lossScaling": context.loss_scaling}
    return {
        name: value
        for name, value in form.compose(_plain(settings), context).items()
        if not all(known[part].is_const for part in form.parts[name])
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
    held = encode(description, names, share)
    for name in held.keys() - tensors.keys():
        logger.warning("The optimizer state lacks parameter %s: it stays.", name)
    changed = {
        name: tensors[name].item()
        for name, value in held.items()
        if name in tensors and tensors[name].item() != value.item()
    }
    if not changed:
        return description, names
    scaled = _with_loss_scaling(description, changed.pop(LOSS_SCALING, None))
    before = _Context(description.loss_scaling, share)
    after = _Context(scaled.loss_scaling, share)
    form = _form_of(description)
    groups: dict[tuple[tuple[str, Setting], ...], list[str]] = {}
    for old, new, group in zip(description.groups, scaled.groups, names, strict=True):
        for weight in group:
            values = form.compose(_plain(old), before)
            values |= {k: changed.get(f"{k}{_SEPARATOR}{weight}", values[k]) for k in values}
            split = form.split(values, _plain(new), after)
            settings = {k: replace(s, value=split.get(k, s.value)) for k, s in new.items()}
            groups.setdefault(tuple(settings.items()), []).append(weight)
    return (
        replace(scaled, groups=tuple(dict(settings) for settings in groups)),
        tuple(tuple(group) for group in groups.values()),
    )


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
