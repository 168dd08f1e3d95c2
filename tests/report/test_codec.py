"""Codes of numbers: known bytes, and every value comes back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import ReportError
from popple.report import codec

numbers = st.integers(0, 2**63 - 1)
run_lists = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=12)


@pytest.mark.parametrize(
    ("value", "blob"),
    [
        (4, b"\x84"),
        (1472, b"\x0b\xc0"),  # 11 * 128 + 64
        (16384, b"\x01\x00\x80"),  # 1 * 128 * 128
    ],
)
def test_varint_bytes(value: int, blob: bytes) -> None:
    assert codec.encode_varint(value) == blob
    assert codec.decode_varints(blob).tolist() == [value]


def test_rle_bytes() -> None:
    # One single 0 (header 3), then 1471 times 4 (header 2942 = 22 * 128 + 126).
    blob = bytes.fromhex("83 80 16fe 84")
    assert codec.encode_rle([(1, 0), (1471, 4)]) == blob
    assert codec.decode_rle(blob) == ((1, 0), (1471, 4))


def test_ascending_bytes() -> None:
    # Differences of 5, 6, 7 are 5, 1, 1: a single 5, then 1 twice.
    assert codec.encode_ascending([5, 6, 7]) == bytes.fromhex("83 85 84 81")


@given(st.lists(numbers))
def test_varints_come_back(values: list[int]) -> None:
    blob = codec.encode_varints(values)
    assert codec.decode_varints(blob).tolist() == values
    assert codec.decode_ids(blob) == tuple(values)


@given(run_lists)
def test_rle_comes_back_canonical(runs: list[codec.Run]) -> None:
    decoded = codec.decode_rle(codec.encode_rle(runs))
    assert decoded == codec.merge_runs(runs)
    assert codec.array_of(decoded).tolist() == codec.array_of(runs).tolist()


@given(run_lists)
def test_packed_comes_back(runs: list[codec.Run]) -> None:
    assert codec.decode_packed(codec.encode_packed(runs)) == codec.merge_runs(runs)


@given(st.lists(st.integers(0, 10**6)))
def test_ascending_comes_back(values: list[int]) -> None:
    ids = sorted(values)
    assert codec.decode_ascending(codec.encode_ascending(ids)) == tuple(ids)


@given(st.lists(st.integers(-3, 3)))
def test_arrays_come_back(values: list[int]) -> None:
    runs = codec.runs_of(values)
    assert codec.array_of(runs).tolist() == values
    assert all(a[1] != b[1] for a, b in pairwise(runs))


@given(run_lists)
def test_sums_agree_with_arrays(runs: list[codec.Run]) -> None:
    array = codec.array_of(runs)
    assert codec.length_of(runs) == array.size
    assert codec.sum_of(runs) == array.sum()
    assert codec.max_of(runs) == array.max(initial=0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20))
def test_zip_runs_walks_every_tile(pairs: list[tuple[int, int]]) -> None:
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    walk = codec.zip_runs(codec.runs_of(left), codec.runs_of(right))
    assert [pair for count, pair in walk for _ in range(count)] == pairs


def test_stored_runs_are_a_sequence_of_runs() -> None:
    stored = codec.StoredRuns(codec.encode_rle([(3, 1), (2, 0)]))
    assert stored == ((3, 1), (2, 0))
    assert list(stored) == [(3, 1), (2, 0)]
    assert stored[1:] == ((2, 0),)
    assert hash(stored) == hash(((3, 1), (2, 0)))
    assert codec.encode_rle(stored) is stored.blob


@pytest.mark.parametrize(
    ("decode", "blob", "text"),
    [
        (codec.decode_varints, b"\x0b", "middle of a number"),
        (codec.decode_ids, b"\x80\x0b", "middle of a number"),
        (codec.decode_varints, b"\x01" * 9 + b"\x80", "63 bits"),
        (codec.decode_rle, b"\x85\x80", "middle of a run"),  # two follow, one is there
        (codec.decode_rle, b"\x84", "middle of a run"),
    ],
)
def test_damaged_blobs_are_refused(
    decode: Callable[[bytes], object], blob: bytes, text: str
) -> None:
    with pytest.raises(ReportError, match=text):
        decode(blob)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ReportError, match="negative"):
        codec.encode_rle([(4, -1)])


def test_empty_vectors_stay_empty() -> None:
    assert codec.decode_rle(b"") == ()
    assert codec.array_of(()).dtype == np.int64
    assert list(codec.zip_runs((), ())) == []
