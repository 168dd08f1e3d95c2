"""What may become of an optimiser after its model is compiled, and how it is logged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from .. import optim
from .._errors import Error
from .._logging import logger
from .description import Description, Setting, Settings
from .rule import Names

__all__ = ["AttributeChecks", "check_owner", "check_replacement", "log_lines"]

_FIXED = {
    "accumulator_type": "accum_type",
    "first_type": "first_order_momentum_accum_type (velocity_accum_type of SGD)",
    "second_type": "second_order_momentum_accum_type",
    "max_grad_norm": "max_grad_norm",
    "uses_tf_variant": "use_tf_variant",
    "is_centered": "centered",
    "corrects_bias": "bias_correction",
}
_CLASS_NAMES = {
    "SGD1": "SGD",
    "SGD2": "SGD",
    "ADAM": "Adam",
    "ADAMW": "AdamW",
    "RMSPROP": "RMSprop",
    "LAMB": "LAMB",
}
_TYPES_OF_STATE = ("accumulator_type", "first_type", "second_type")
_REMEDY = (
    "Before the model is compiled, pass it to the constructor of a poptorch.optim "
    "optimizer or mark it with optimizer.variable_attrs.markAsVariable; or call "
    "destroy() on the model first."
)


def check_owner(
    optimizer: torch.optim.Optimizer, parameters: Iterable[torch.nn.Parameter]
) -> None:
    """Refuse an optimiser of another model, warn of one that knows others' weights."""
    own = {parameter.data_ptr() for parameter in parameters}
    listed = [p for group in optimizer.param_groups for p in group["params"]]
    foreign = [p for p in listed if p.data_ptr() not in own]
    if not own or not foreign:
        return
    remedy = "Make the optimizer from the parameters() of the model that is wrapped."
    if len(foreign) == len(listed):
        raise Error(
            "None of the optimizer's parameters belongs to the model, so nothing would "
            f"be trained. {remedy}"
        )
    logger.warning(
        "%d of the optimizer's %d parameters do not belong to the model and are left "
        "alone. %s",
        len(foreign),
        len(listed),
        remedy,
    )


def check_replacement(old: Description, new: Description) -> None:
    """Refuse an optimiser that a compiled model cannot take in place of its own."""
    _check_same("type", _CLASS_NAMES[old.kind], _CLASS_NAMES[new.kind])
    _check_same("number of parameter groups", len(old.groups), len(new.groups))
    _check_settings("default", old.defaults, new.defaults)
    for number, (before, after) in enumerate(zip(old.groups, new.groups, strict=True)):
        _check_settings(f"group {number}", before, after)
    is_sgd = old.kind in ("SGD1", "SGD2")
    if is_sgd and old.has_velocity:
        _check_same("use_combined_accum", old.kind == "SGD1", new.kind == "SGD1")
    for field, attribute in _FIXED.items():
        is_held = not is_sgd or (old.kind == "SGD2" and old.has_velocity)
        if is_held or field not in _TYPES_OF_STATE:
            _check_same(attribute, getattr(old, field), getattr(new, field))


def _check_same(what: str, old: object, new: object) -> None:
    if old != new:
        raise Error(
            f"The optimizer's {what} was {old} when the model was compiled and cannot "
            f"become {new}. Call destroy() on the model first."
        )


def _check_settings(place: str, old: Settings, new: Settings) -> None:
    for name, before in old.items():
        after = new[name]
        if before.is_const and after != before:
            raise Error(
                f"The optimizer's {name} ({place}) is constant: the model was compiled "
                f"with {before}, which cannot become {_words(after)}. {_REMEDY}"
            )
        if after.is_const and not before.is_const:
            raise Error(
                f"The optimizer's {name} ({place}) is variable in the compiled model, "
                f"but constant in the new optimizer ({after}). {_REMEDY}"
            )


def _words(setting: Setting) -> str:
    return f"{setting.value:g}{'' if setting.is_const else ' (variable)'}"


def log_lines(description: Description, names: Names) -> Iterable[str]:
    """What is logged when an optimiser goes to the device: the whole, then groups."""
    defaults = {_default_name(k): v for k, v in description.defaults.items()}
    yield f"Updating graph optimizer with {_line(description, defaults)}"
    groups = zip(description.groups, names, strict=True)
    for number, (settings, group) in enumerate(groups):
        line = _line(description, settings)
        affected = ", ".join(group)
        yield f"Updating group {number} optimizer with {line} for [{affected}]"


def _default_name(name: str) -> str:
    if name in ("lossScaling", "nesterov"):
        return name
    return f"default{name[0].upper()}{name[1:]}"


def _line(description: Description, settings: Mapping[str, Setting]) -> str:
    types = {
        "accumType": description.accumulator_type,
        "firstOrderMomentumAccumType": description.first_type,
        "secondOrderMomentumAccumType": description.second_type,
    }
    pairs = [
        *(f"{name}={settings[name]}" for name in sorted(settings)),
        *(f"{name}={_type_name(dtype)}" for name, dtype in types.items()),
        f"useTfVariant={int(description.uses_tf_variant)}",
        f"maxGradNorm={description.max_grad_norm:g}",
    ]
    return ", ".join([description.kind, *pairs])


def _type_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class AttributeChecks:
    """Warns, once each, of attributes a program adds to an optimiser in use.

    Those that are there when it is first used are no surprise.
    """

    def __init__(self, is_relaxed: bool) -> None:
        self._log = logger.debug if is_relaxed else logger.warning
        self._expected: set[tuple[str, str]] = set()
        self._is_first = True
        self._said: set[str] = set()

    def check(self, optimizer: torch.optim.Optimizer, kind: str) -> None:
        """Warn of what `optimizer` has that the one first checked had not."""
        added = _added_attributes(optimizer)
        if self._is_first:
            self._expected = {(what, n) for what, _, names in added for n in names}
            self._is_first = False
            return
        for what, number, names in added:
            extra = [name for name in names if (what, name) not in self._expected]
            if extra:
                place = f"{what}{number} attribute in {kind} optimizer"
                self._say(f"Ignoring unexpected {place}: {extra}")

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._log(message)


def _added_attributes(
    optimizer: torch.optim.Optimizer,
) -> list[tuple[str, str, list[str]]]:
    """Attributes of the optimizer and its groups that its class does not give them.

    Functions are not settings: schedulers replace `step`.
    """
    own = {"defaults", "state", "param_groups", "variable_attrs"}
    if isinstance(optimizer, optim.Optimizer):
        own |= {
            *optimizer._extra_arguments,
            "ipu_state_is_dirty",
            "host_state_is_dirty",
        }
    found = [
        name
        for name, value in vars(optimizer).items()
        if name not in own and not name.startswith("_") and not callable(value)
    ]
    known = {"params", *optimizer.defaults}
    groups = [
        ("group", f" {number}", [name for name in group if name not in known])
        for number, group in enumerate(optimizer.param_groups)
    ]
    return [("optimizer", "", found), *groups]
