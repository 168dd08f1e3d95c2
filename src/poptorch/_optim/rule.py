"""From the description of an optimiser to the rule the engine updates weights by."""

from __future__ import annotations

import torch

from popple.engine.torch import ParameterGroup, UpdateRule

from .._errors import Error
from .description import NAMES, Description, Settings

__all__ = ["Names", "held_slots", "make_rule", "names_of_groups"]

Names = tuple[tuple[str, ...], ...]
"""Names of the weights of each parameter group."""

_KINDS = {
    "ADAM": "adam",
    "ADAMW": "adamw",
    "LAMB": "lamb",
    "RMSPROP": "rmsprop",
}
_ATTRIBUTES = {name: attribute for attribute, name in NAMES.items()}


def names_of_groups(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> Names:
    """The names of each group's weights; `names` maps ids of parameters to names."""
    return tuple(
        tuple(names[id(p)] for p in group["params"] if id(p) in names)
        for group in optimizer.param_groups
    )


def make_rule(description: Description, names: Names) -> UpdateRule:
    """The rule for weights of these names."""
    bound = description.max_grad_norm
    if not bound > 0:
        raise Error(f"max_grad_norm must be a positive number, not {bound}.")
    if not description.loss_scaling.value:
        raise Error("loss_scaling must not be 0: all gradients would vanish.")
    is_combined = description.kind == "SGD1"
    return UpdateRule(
        kind=_engine_kind(description),
        groups=tuple(
            ParameterGroup(names_of_group, _numbers(settings, description))
            for settings, names_of_group in zip(description.groups, names, strict=True)
        ),
        max_grad_norm=bound,
        uses_tf_variant=description.uses_tf_variant,
        loss_scaling=description.loss_scaling.value,
        slot_types=held_slots(description),
        accumulator_type=None if is_combined else description.accumulator_type,
    )


def _engine_kind(description: Description) -> str:
    if description.kind in _KINDS:
        return _KINDS[description.kind]
    return "momentum" if description.has_velocity else "sgd"


def held_slots(description: Description) -> dict[str, torch.dtype | None]:
    """The state that is held between updates, with its types."""
    first, second = description.first_type, description.second_type
    if description.kind == "RMSPROP":
        slots: dict[str, torch.dtype | None] = {"square_average": first}
        if description.is_centered:
            slots["gradient_average"] = second
        return slots | ({"velocity": torch.float32} if description.has_velocity else {})
    if description.kind in _KINDS:
        slots = {"moment1": first, "moment2": second}
        return slots | ({"step": torch.float32} if description.corrects_bias else {})
    if not description.has_velocity:
        return {}
    # The combined variant has one tensor, of the weight's type.
    return {"velocity": None if description.kind == "SGD1" else first}


def _numbers(settings: Settings, description: Description) -> dict[str, float | bool]:
    """The settings of a group by the names the engine has for them."""
    numbers: dict[str, float | bool] = {
        _ATTRIBUTES.get(name, name): setting.value for name, setting in settings.items()
    }
    numbers["bias_correction"] = description.corrects_bias
    numbers["centered"] = description.is_centered
    return numbers
