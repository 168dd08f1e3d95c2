"""An optimiser as the device is told of it: numbers, each compiled in or variable.

In: an optimiser of torch or poptorch. Out: a Description, plain data that can be
compared, logged and turned into the engine's rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .. import optim
from .._errors import check
from .._logging import logger

__all__ = [
    "NAMES",
    "Description",
    "Setting",
    "Settings",
    "check_optimizer",
    "describe",
]


@dataclass(frozen=True)
class Setting:
    """A number of an optimiser; a constant is compiled in."""

    value: float
    is_const: bool

    def __str__(self) -> str:
        return f"{self.value:g}{' (const)' if self.is_const else ''}"


Settings = Mapping[str, Setting]
"""Settings by the names the device has for them."""

NAMES = {
    "lr": "learningRate",
    "momentum": "momentum",
    "dampening": "dampening",
    "weight_decay": "weightDecay",
    "nesterov": "nesterov",
    "velocity_scaling": "velocityScaling",
    "eps": "eps",
    "alpha": "alpha",
    "max_weight_norm": "maxWeightNorm",
}
"""Names of settings in parameter groups -> on the device. `betas` becomes two."""


@dataclass(frozen=True)
class Description:
    """All that the device knows of an optimiser.

    `groups` holds the settings of each parameter group, `defaults` those that groups
    start from and the loss scaling. What follows can never change once compiled.
    """

    kind: str
    defaults: Settings
    groups: tuple[Settings, ...]
    accumulator_type: torch.dtype = torch.float32
    first_type: torch.dtype = torch.float32
    second_type: torch.dtype = torch.float32
    max_grad_norm: float = float("inf")
    uses_tf_variant: bool = False
    is_centered: bool = False
    corrects_bias: bool = True

    @property
    def loss_scaling(self) -> Setting:
        """The factor on the loss."""
        return self.defaults["lossScaling"]

    @property
    def has_velocity(self) -> bool:
        """Whether there is momentum, or there may be later."""
        momenta = [group.get("momentum") for group in self.groups]
        return any(m is not None and (m.value or not m.is_const) for m in momenta)


_CLASSES: tuple[tuple[type, str], ...] = (
    (optim.LAMB, "LAMB"),
    (torch.optim.AdamW, "ADAMW"),  # before Adam, which it derives from
    (torch.optim.Adam, "ADAM"),
    (torch.optim.RMSprop, "RMSPROP"),
    (torch.optim.SGD, "SGD"),
)
_ARGUMENTS = {
    "SGD1": optim.SGD._group_arguments,
    "SGD2": optim.SGD._group_arguments,
    "ADAM": optim.Adam._group_arguments,
    "ADAMW": optim.AdamW._group_arguments,
    "RMSPROP": optim.RMSprop._group_arguments,
    "LAMB": optim.LAMB._group_arguments,
}
_KNOWN = frozenset(
    {
        optim.LAMB,
        *(
            getattr(package, name)
            for package in (torch.optim, optim)
            for name in ("SGD", "Adam", "AdamW", "RMSprop")
        ),
    }
)
_FIXED_DEFAULTS: dict[str, Any] = {
    "accum_type": torch.float32,
    "velocity_accum_type": torch.float32,
    "first_order_momentum_accum_type": torch.float32,
    "second_order_momentum_accum_type": torch.float32,
    "max_grad_norm": float("inf"),
    "use_tf_variant": False,
    "bias_correction": True,
}
# Attributes of torch's own optimisers are constant where they have these values.
_CONSTANT_VALUES = {
    "weight_decay": 0.0,
    "momentum": 0.0,
    "dampening": 0.0,
    "velocity_scaling": 1.0,
    "eps": 1e-8,
    "loss_scaling": 1.0,
    "max_weight_norm": 65500.0,
}
_ALWAYS_CONSTANT = frozenset({"betas", "alpha", "nesterov"})


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimiser without a formula; warn of code that will not run."""
    kind = _kind_of(optimizer)
    groups = optimizer.param_groups
    if any(group.get("amsgrad") for group in groups):
        raise ValueError(
            "Only non-amsgrad Adam/AdamW optimizers are supported: pass amsgrad=False."
        )
    if kind == "RMSPROP":
        check(
            len({group["centered"] for group in groups}) == 1,
            "All parameter groups of RMSprop must have the same value of 'centered'.",
        )
    if type(optimizer) not in _KNOWN:
        logger.warning(
            "Poptorch does not run Python optimizer code directly: the step() of "
            "%s is replaced by that of the optimizer it derives from.",
            type(optimizer).__name__,
        )


def describe(optimizer: torch.optim.Optimizer, is_automatic: bool) -> Description:
    """What the device is told of an optimiser.

    `is_automatic` is for a loss scaling that changes by itself.
    """
    kind = _kind_of(optimizer)
    scaling = _loss_scaling(optimizer, is_automatic)
    defaults = {
        **_settings(kind, optimizer.defaults, optimizer, scaling),
        "lossScaling": scaling,
    }
    groups = tuple(
        _settings(kind, group, optimizer, scaling) for group in optimizer.param_groups
    )
    return Description(kind, defaults, groups, **_fixed(kind, optimizer))


def _kind_of(optimizer: torch.optim.Optimizer) -> str:
    for cls, kind in _CLASSES:
        if not isinstance(optimizer, cls):
            continue
        if kind == "SGD":
            return "SGD1" if getattr(optimizer, "use_combined_accum", False) else "SGD2"
        return "ADAMW" if kind == "ADAM" and _is_decoupled(optimizer) else kind
    supported = "SGD, Adam, AdamW, RMSprop of torch or poptorch, or poptorch.optim.LAMB"
    name = type(optimizer).__name__
    raise AssertionError(f"Unsupported optimizer type {name}: use {supported}.")


def _is_decoupled(optimizer: torch.optim.Optimizer) -> bool:
    """Recent versions of torch's Adam can decay weights as AdamW does."""
    groups = optimizer.param_groups
    return any(group.get("decoupled_weight_decay") for group in groups)


def _loss_scaling(optimizer: torch.optim.Optimizer, is_automatic: bool) -> Setting:
    value = float(getattr(optimizer, "loss_scaling", 1.0))
    is_const = _is_const(optimizer, "loss_scaling", value, "")
    return Setting(value, is_const and not is_automatic)


def _settings(
    kind: str,
    group: Mapping[str, Any],
    optimizer: torch.optim.Optimizer,
    scaling: Setting,
) -> dict[str, Setting]:
    """The settings of a parameter group, or of the defaults."""
    result: dict[str, Setting] = {}
    for attribute in _ARGUMENTS[kind]:
        if attribute == "betas":
            is_const = _is_const(optimizer, "betas", 0.0, kind)
            for name, value in zip(("beta1", "beta2"), group["betas"], strict=True):
                result[name] = Setting(float(value), is_const)
        elif name := NAMES.get(attribute):
            # Only the combined variant of SGD has a velocity scaling of its own.
            is_own = attribute != "velocity_scaling" or attribute in group
            value = float(group[attribute]) if is_own else 1.0
            is_const = _is_const(optimizer, attribute, value, kind)
            result[name] = Setting(value, is_const)
    if kind == "SGD2":
        result["velocityScaling"] = scaling  # velocity is as large as gradients are
    return result


def _is_const(
    optimizer: torch.optim.Optimizer, attribute: str, value: float, kind: str
) -> bool:
    """Whether an attribute is compiled in; poptorch's optimisers say so themselves."""
    if isinstance(optimizer, optim.Optimizer):
        return optimizer.variable_attrs.isConstant(attribute)
    if kind == "ADAMW" and attribute == "weight_decay":
        return value == 0.01
    return attribute in _ALWAYS_CONSTANT or _CONSTANT_VALUES.get(attribute) == value


def _fixed(kind: str, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What can never change, by the names of Description."""
    values = {
        name: getattr(optimizer, name, default)
        for name, default in _FIXED_DEFAULTS.items()
    }
    is_sgd = kind in ("SGD1", "SGD2")
    first = "velocity_accum_type" if is_sgd else "first_order_momentum_accum_type"
    return {
        "accumulator_type": values["accum_type"],
        "first_type": values[first],
        "second_type": values["second_order_momentum_accum_type"],
        "max_grad_norm": float(values["max_grad_norm"]),
        "uses_tf_variant": bool(values["use_tf_variant"]),
        "is_centered": any(g.get("centered") for g in optimizer.param_groups),
        # AdamW corrects the bias whatever it is told.
        "corrects_bias": kind != "LAMB" or bool(values["bias_correction"]),
    }
