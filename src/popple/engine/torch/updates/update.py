"""Weight updates: optimisers as data (UpdateRule), their state, and `apply_update`.

Arithmetic is done in float32; weights and state held in float16 are rounded when they
are stored.

An UpdateRule is the optimiser as data. State is a dict of slots, each a dict from
parameter name to tensor, made by `initial_state` and overwritten by `apply_update`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from popple.engine.torch.updates.clip import clip_gradients
from popple.engine.torch.updates.formulas import FORMULAS, Formula, Settings
from popple.errors import UsageError, suggest

Slots = dict[str, dict[str, Tensor]]
STATE_SLOTS: dict[str, tuple[str, ...]] = {
    "sgd": (),
    "momentum": ("velocity",),
    "adam": ("moment1", "moment2", "step"),
    "adamw": ("moment1", "moment2", "step"),
    "lamb": ("moment1", "moment2", "step"),
    "rmsprop": ("square_average", "velocity", "gradient_average"),
}
"""State of each kind of optimiser, in the order the formulas use it."""


@dataclass(frozen=True)
class ParameterGroup:
    """Weights that share settings."""

    names: tuple[str, ...]
    settings: Settings


@dataclass(frozen=True)
class UpdateRule:
    """An optimiser: its kind, its groups, and a bound on the gradients' norm.

    Weights of one group have made equally many steps. The gradients of the step are
    `loss_scaling` times too large until they are used. `slot_types` are the slots of
    state that are held and their types, None for the type of the weight; by default
    all that the kind and its settings need. Gradients of micro-batches are summed in
    `accumulator_type`; None for their own.
    """

    kind: str
    groups: tuple[ParameterGroup, ...]
    max_grad_norm: float = float("inf")
    uses_tf_variant: bool = False
    loss_scaling: float = 1.0
    slot_types: Mapping[str, torch.dtype | None] | None = None
    accumulator_type: torch.dtype | None = None

    def __post_init__(self) -> None:
        if self.kind not in STATE_SLOTS:
            remedy = suggest(self.kind, STATE_SLOTS)
            raise UsageError(f"there is no optimiser {self.kind!r}.", remedy=remedy)
        if not self.max_grad_norm > 0:
            raise UsageError(
                f"max_grad_norm must be a positive number, not {self.max_grad_norm}."
            )
        if not self.loss_scaling:
            raise UsageError("loss_scaling must not be 0.")

    @property
    def slots(self) -> Mapping[str, torch.dtype | None]:
        """Slots of state that are held, with their types."""
        if self.slot_types is not None:
            return self.slot_types
        return dict.fromkeys(filter(self._needs, STATE_SLOTS[self.kind]))

    def _needs(self, slot: str) -> bool:
        if self.kind != "rmsprop" or slot == "square_average":
            return True
        setting = "momentum" if slot == "velocity" else "centered"
        return any(group.settings[setting] for group in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """All weights the rule updates."""
        return tuple(name for group in self.groups for name in group.names)


def initial_state(rule: UpdateRule, weights: Mapping[str, Tensor]) -> Slots:
    """State before the first update: zeros, but ones for TF's RMSprop average."""
    state: Slots = {}
    for slot, dtype in rule.slots.items():
        start = 1.0 if rule.uses_tf_variant and slot == "square_average" else 0.0
        state[slot] = {
            name: torch.zeros((), dtype=torch.float32, device=weights[name].device)
            if slot == "step"
            else torch.full_like(
                weights[name], start, dtype=dtype, memory_format=torch.preserve_format
            )
            for name in rule.names
        }
    return state


def with_equal_steps(rule: UpdateRule, state: Slots) -> UpdateRule:
    """The rule with groups divided so that their weights have made equal steps."""
    steps = _numbers(state.get("step", {}))
    groups: list[ParameterGroup] = []
    for group in rule.groups:
        # Weights that were frozen for a while, or loaded from a checkpoint, lag behind;
        # the formulas correct the bias of a whole list by one number.
        by_step: dict[float, list[str]] = {}
        for name in group.names:
            by_step.setdefault(steps.get(name, 0.0), []).append(name)
        groups += [replace(group, names=tuple(names)) for names in by_step.values()]
    return replace(rule, groups=tuple(groups))


def _numbers(scalars: Mapping[str, Tensor]) -> dict[str, float]:
    """What single numbers are, looked at all at once."""
    if not scalars:
        return {}
    values = torch.stack(list(scalars.values())).tolist()
    return dict(zip(scalars, values, strict=True))


_PART_SIZE = 1 << 20
"""Numbers that are converted at a time on a CPU: copies of all would fill memory."""


def in_float32(formula: Formula) -> Formula:
    """The formula for tensors of any type: they are rounded when they are stored."""

    def update(
        weights: list[Tensor],
        gradients: list[Tensor],
        state: Mapping[str, list[Tensor]],
        settings: Settings,
    ) -> None:
        for part in _parts([weights, gradients, *state.values()]):
            held = [weights[part], *(tensors[part] for tensors in state.values())]
            wide = [_in_float32(tensors) for tensors in held]
            given = list(map(_laid_out_like, held[0], _in_float32(gradients[part])))
            formula(wide[0], given, dict(zip(state, wide[1:], strict=True)), settings)
            for tensors, results in zip(held, wide, strict=True):
                # Lists that are float32 already were updated in place.
                if results is not tensors:
                    torch._foreach_copy_(tensors, results)

    return update


def _parts(lists: list[list[Tensor]]) -> list[slice]:
    """Which tensors of each list are converted together: few numbers, on a CPU.

    A GPU has one kernel for them all, and float32 is not converted.
    """
    weights = lists[0]
    is_plain = all(t.dtype is torch.float32 for tensors in lists for t in tensors)
    if is_plain or any(weight.device.type != "cpu" for weight in weights):
        return [slice(0, len(weights))]
    bounds, held = [0], 0
    for number, weight in enumerate(weights):
        if held and held + weight.numel() > _PART_SIZE:
            bounds.append(number)
            held = 0
        held += weight.numel()
    return [slice(*pair) for pair in pairwise([*bounds, len(weights)])]


_FORMULAS = {kind: in_float32(formula) for kind, formula in FORMULAS.items()}


def apply_update(
    rule: UpdateRule,
    weights: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    state: Slots,
    formulas: Mapping[str, Formula] = _FORMULAS,
) -> None:
    """Overwrite weights and state with those after one update.

    `formulas` take tensors of any type.
    """
    if rule.max_grad_norm != float("inf"):
        clipped = clip_gradients(list(gradients.values()), rule.max_grad_norm)
        gradients = dict(zip(gradients, clipped, strict=True))
    formula = formulas[rule.kind]
    for group in rule.groups:
        names = [name for name in group.names if name in gradients]
        if not names:
            continue
        formula(
            [weights[name] for name in names],
            [gradients[name] for name in names],
            {slot: [state[slot][name] for name in names] for slot in rule.slots},
            {**group.settings, "use_tf_variant": rule.uses_tf_variant},
        )


def _in_float32(tensors: list[Tensor]) -> list[Tensor]:
    """The tensors, or if there are others among them, all as float32."""
    if all(tensor.dtype is torch.float32 for tensor in tensors):
        return tensors
    wide = [torch.empty_like(tensor, dtype=torch.float32) for tensor in tensors]
    # One kernel of a GPU for all of them.
    torch._foreach_copy_(wide, tensors)
    return wide


def _laid_out_like(weight: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in memory as the weight is: a gradient may be a view."""
    if gradient.stride() == weight.stride():
        return gradient
    return torch.empty_like(weight, dtype=gradient.dtype).copy_(gradient)
