"""Operators met before in a trace return what they would if they were run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from popple.capture.torch.known_results import KnownResults

aten = torch.ops.aten
_MODE = FakeTensorMode()


def _fake(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    with _MODE:
        return torch.empty(*shape, dtype=dtype)


def _described(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value if value is None else [_described(each) for each in value]
    assert type(value) is FakeTensor
    place = value.storage_offset(), value.untyped_storage().nbytes()
    return value.shape, value.stride(), value.dtype, value.device, place


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (aten.mm.default, (_fake(2, 3), _fake(3, 4))),
        (aten.t.default, (_fake(2, 3),)),
        (aten.slice.Tensor, (_fake(6, 3), 0, 2, 4)),
        (aten.split.Tensor, (_fake(6, 3), 2)),
        (aten.native_layer_norm.default, (_fake(2, 8), [8], None, None, 1e-5)),
        (aten.sum.dim_IntList, (_fake(2, 3).t(), [0])),
        (aten.div.Tensor, (_fake(2, dtype=torch.int32), 2)),
        (aten.relu_.default, (_fake(2),)),
    ],
)
def test_second_call_returns_what_the_first_returned(func: Any, args: Any) -> None:
    known = KnownResults()
    first, second = (known.run(func, args, {}) for _ in range(2))
    wanted = _described(func(*args))
    assert _described(first.value) == _described(second.value) == wanted
    assert _described(second.shown) == wanted


def test_views_share_memory_and_results_have_their_own() -> None:
    known, source = KnownResults(), _fake(2, 3)
    views = [known.run(aten.t.default, (source,), {}) for _ in range(2)]
    sums = [known.run(aten.add.Tensor, (source, 1), {}) for _ in range(2)]
    places = [r.value.untyped_storage()._cdata for r in (*views, *sums)]
    assert places[0] == places[1] == source.untyped_storage()._cdata
    assert len(set(places)) == 3
    assert sums[1].shown.untyped_storage()._cdata == places[3]
    # Another form of one does not change the other.
    sums[1].value.t_()
    assert sums[1].shown.shape == (2, 3)


def test_equal_numbers_of_other_types_are_other_calls() -> None:
    # 2, 2.0 and True are equal in Python; their sums with an integer are not alike.
    known, source = KnownResults(), _fake(3, dtype=torch.int32)
    numbers = (1, 1.0, True)
    types = [known.run(aten.add.Tensor, (source, n), {}).value.dtype for n in numbers]
    assert types == [torch.int32, torch.float32, torch.int32]


def test_quotients_follow_the_default_type() -> None:
    known, source = KnownResults(), _fake(3, dtype=torch.int32)
    assert known.run(aten.div.Tensor, (source, 2), {}).value.dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert known.run(aten.div.Tensor, (source, 2), {}).value.dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
