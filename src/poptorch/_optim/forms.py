"""How the device writes the settings of each kind of optimiser.

Most have a number for each setting. SGD has products of settings, which `compose` makes
and `split` takes apart again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .._errors import Error
from .description import Description, Setting

__all__ = ["Context", "Form", "Values", "form_of"]


@dataclass(frozen=True)
class Context:
    """What the products of SGD contain beside the settings of a group.

    `share` is what summed gradients are multiplied by to make their mean.
    """

    loss_scaling: Setting
    share: float


Values = dict[str, float]
Compose = Callable[[Mapping[str, float], Context], Values]
Split = Callable[[Values, Mapping[str, float], Context], Values]


@dataclass(frozen=True)
class Form:
    """How the settings of one kind of optimiser are named on the device.

    `parts` are the settings that each number depends on, `lossScaling` included.
    """

    compose: Compose
    split: Split
    parts: Mapping[str, tuple[str, ...]]


def _compose_plain_sgd(s: Mapping[str, float], context: Context) -> Values:
    rate = s["learningRate"] * (1 - s["dampening"])
    return {
        "scaledLearningRate0": rate * context.share / context.loss_scaling.value,
        "weightDecayScaleFactor0": 1 - rate * s["weightDecay"],
    }


def _split_plain_sgd(v: Values, s: Mapping[str, float], context: Context) -> Values:
    rate = v["scaledLearningRate0"] * context.loss_scaling.value / context.share
    return {
        "learningRate": rate,
        "dampening": 0.0,
        "weightDecay": _decay(1 - v["weightDecayScaleFactor0"], rate),
    }


def _decay(product: float, rate: float) -> float:
    """The weight decay in its product with a rate."""
    if product and not rate:
        raise Error(
            "The loaded optimizer state decays weights whose gradients have no effect, "
            "which no weight_decay does: check the numbers of ipu_param."
        )
    return product / rate if rate else 0.0


def _compose_momentum(number: int) -> Compose:
    def compose(s: Mapping[str, float], context: Context) -> Values:
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
    def split(v: Values, s: Mapping[str, float], context: Context) -> Values:
        factor = v[f"dampeningScaleFactor{number}"]
        gain = factor * context.loss_scaling.value / context.share
        return {
            "learningRate": v[f"scaledLearningRate{number}"] * s["velocityScaling"],
            "momentum": v[f"scaledMomentum{number}"],
            "dampening": 1 - gain / s["velocityScaling"],
            "weightDecay": _decay(v["scaledWeightDecay1"], gain),
        }

    return split


def _renamed(names: Mapping[str, str]) -> Form:
    return Form(
        compose=lambda s, context: {new: s[old] for old, new in names.items()},
        split=lambda v, s, context: {old: v[new] for old, new in names.items()},
        parts={new: (old,) for old, new in names.items()},
    )


def _momentum(number: int) -> Form:
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
    return Form(_compose_momentum(number), _split_momentum(number), parts)


_COMMON = {"learningRate": "learningRate", "weightDecay": "weightDecay"}
_ADAM = _COMMON | {"beta1": "adamBeta1", "beta2": "adamBeta2", "eps": "adamEps"}
_FORMS = {
    "SGD": Form(
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


def form_of(description: Description) -> Form:
    """How the device writes this optimiser."""
    is_plain = description.kind in ("SGD1", "SGD2") and not description.has_velocity
    return _FORMS["SGD" if is_plain else description.kind]
