"""The values PopTorch programs take from popart."""

from __future__ import annotations

import pytest

import popart
import poptorch


def test_numbers_are_popart_s() -> None:
    assert popart.AccumulateOuterFragmentSchedule.OverlapMemoryOptimized == 3
    assert popart.RecomputationType.Pipeline == 3
    assert popart.SubgraphCopyingStrategy.JustInTime == 1
    assert popart.SyntheticDataMode.RandomNormal == 2


def test_options_take_them() -> None:
    options = poptorch.Options()
    mode = popart.SubgraphCopyingStrategy.JustInTime
    options._Popart.set("subgraphCopyingStrategy", int(mode))
    assert options._Popart.options["subgraphCopyingStrategy"] == 1


def test_the_rest_is_said_to_be_missing() -> None:
    with pytest.raises(AttributeError, match=r"popart\.Builder is not part of Popple"):
        _ = popart.Builder
    assert not hasattr(popart, "TrainingSession")
