"""The loss scale: what the step takes, and how it adapts itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from popple.engine.torch import AutomaticScaling, LossScale
from popple.errors import UsageError


def adapted(scale: LossScale, *shares: float) -> float:
    """The factor after an update whose micro-batches had these shares."""
    for share in shares:
        scale.count(torch.tensor(share))
    scale.adapt()
    return float(scale.factor)


def test_a_plain_scale_is_what_the_optimiser_asks_for() -> None:
    scale = LossScale()
    assert scale.argument_for(8.0).item() == 8.0
    assert (scale.value, adapted(scale, 1.0)) == (8.0, 1.0)


def test_the_factor_doubles_until_gradients_are_large() -> None:
    scale = LossScale(AutomaticScaling(threshold=0.25))
    assert adapted(scale, 0.0) == 2.0
    assert adapted(scale, 0.25) == 4.0
    assert adapted(scale, 0.0, 0.6) == 2.0  # 0.3 on average
    assert scale.argument_for(3.0).item() == 6.0


def test_it_changes_once_in_a_period() -> None:
    scale = LossScale(AutomaticScaling(period=3))
    assert [adapted(scale, 0.0) for _ in range(5)] == [2, 2, 2, 4, 4]


def test_without_statistics_it_stays() -> None:
    assert adapted(LossScale(AutomaticScaling())) == 1.0


def test_large_is_a_part_of_the_largest_half() -> None:
    assert AutomaticScaling().large == 65504 / 8


@pytest.mark.parametrize(
    "settings", [{"bin_edge": 1.5}, {"threshold": -0.1}, {"period": 0}], ids=str
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        AutomaticScaling(**settings)
