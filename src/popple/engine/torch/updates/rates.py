"""Learning rates as GPU tensors, so that a captured update follows their changes.

Programs change rates all the time and other settings hardly ever: those are part of
what is captured.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import torch
from torch import Tensor

from popple.engine.torch.updates.update import ParameterGroup, UpdateRule


class DeviceRates:
    """Turns rules into ones that read their rates from memory that stays.

    `settings` identifies all of the newest rule but its rates.
    """

    def __init__(self) -> None:
        self.settings: Hashable = None
        self._newest: tuple[UpdateRule, UpdateRule] | None = None
        self._rates: list[Tensor] = []

    def follow(self, rule: UpdateRule) -> UpdateRule:
        """The rule with its rates on the device, where they are written now."""
        # By identity: rules are immutable, and comparing them would cost in every call.
        if self._newest is None or rule is not self._newest[0]:
            self._newest = (rule, self._with_tensors(rule))
            self.settings = _settings_of(rule)
        return self._newest[1]

    def _with_tensors(self, rule: UpdateRule) -> UpdateRule:
        while len(self._rates) < len(rule.groups):
            self._rates.append(torch.zeros((), device="cuda"))
        groups: list[ParameterGroup] = []
        for rate, group in zip(self._rates, rule.groups, strict=False):
            rate.fill_(group.settings["lr"])
            groups.append(replace(group, settings={**group.settings, "lr": rate}))
        return replace(rule, groups=tuple(groups))


def _settings_of(rule: UpdateRule) -> Hashable:
    """All that an update depends on besides rates."""
    groups = tuple(
        (group.names, tuple((k, v) for k, v in group.settings.items() if k != "lr"))
        for group in rule.groups
    )
    return rule.kind, groups, rule.max_grad_norm, rule.uses_tf_variant
