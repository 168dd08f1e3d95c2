"""Copies that wait: two sides that never see each other's writes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from popple.engine.torch.copies import LARGE_BYTES, copy_of

COUNT = LARGE_BYTES // 4


def parameter(count: int = COUNT) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.ones(count))


def is_waiting(tensor: torch.Tensor) -> bool:
    return torch._C._is_cow_tensor(tensor)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("writes", ["host", "device"])
def test_a_write_on_one_side_is_not_seen_on_the_other(writes: str) -> None:
    host = parameter()
    device = copy_of(host.detach())
    assert is_waiting(device)
    sides = {"host": host.detach(), "device": device}
    sides.pop(writes).add_(1)
    (other,) = sides.values()
    assert other.eq(1).all()


def test_reading_copies_nothing() -> None:
    device = copy_of(parameter().detach())
    assert device.sum() == COUNT
    assert is_waiting(device)


def test_memory_that_an_array_can_write_is_copied_at_once() -> None:
    host = parameter()
    array = host.detach().numpy()
    device = copy_of(host.detach())
    array[:] = 5
    assert device.eq(1).all()


def test_memory_of_others_is_copied_at_once() -> None:
    array = np.ones(COUNT, np.float32)
    host = torch.nn.Parameter(torch.from_numpy(array))
    device = copy_of(host.detach())
    array[:] = 5
    assert device.eq(1).all()
    assert host.eq(5).all()


def test_a_part_of_larger_memory_is_copied_at_once() -> None:
    host = torch.nn.Parameter(torch.ones(2 * COUNT)[COUNT:])
    assert not is_waiting(copy_of(host.detach()))


def test_small_tensors_are_copied_at_once() -> None:
    assert not is_waiting(copy_of(parameter(COUNT - 1).detach()))
