"""Weights in half precision are updated a few at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from popple.engine.torch.updates import update
from popple.engine.torch.updates.formulas import Settings

SIZES = (3, 4, 20, 1, 2)


def updated(part_size: int, monkeypatch: pytest.MonkeyPatch) -> list[list[Tensor]]:
    """Weights after w -= g, in the groups in which they were converted."""
    monkeypatch.setattr(update, "_PART_SIZE", part_size)
    groups: list[list[Tensor]] = []

    def descend(
        weights: list[Tensor], gradients: list[Tensor], _state: object, _: Settings
    ) -> None:
        torch._foreach_sub_(weights, gradients)
        groups.append(weights)

    weights = [torch.full((size,), 3.0).half() for size in SIZES]
    gradients = [torch.full((size,), float(size)).half() for size in SIZES]
    update.in_float32(descend)(weights, gradients, {}, {})
    assert [w[0].item() for w in weights] == [3.0 - size for size in SIZES]
    return groups


def test_parts_hold_few_numbers_or_one_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = updated(8, monkeypatch)
    # 3 + 4 fit into 8; 20 do not, and stand alone; 1 + 2 are left.
    assert [[len(w) for w in group] for group in groups] == [[3, 4], [20], [1, 2]]
    assert {w.dtype for group in groups for w in group} == {torch.float32}


def test_all_are_updated_at_once_where_they_are_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(updated(30, monkeypatch)) == 1
