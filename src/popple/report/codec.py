"""Codecs of a report file: varints and run-length coded tile vectors, both ways.

    varint     7 bits a byte, most significant group first, last byte >= 0x80
    varints    a plain list of them
    rle        runs: an even header 2n repeats the next value n times,
               an odd header 2n+1 is followed by n single values
    packed     one varint a tile, from and to runs
    ascending  sorted ids as differences, then rle

In: run vectors `[(count, value), ...]` or numpy arrays over tiles. Out: bytes,
and back. Runs that come back are canonical: no empty run, no equal neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt

from popple.errors import ReportError

Run: TypeAlias = tuple[int, int]
Runs: TypeAlias = Sequence[Run]
IntArray: TypeAlias = npt.NDArray[np.int64]

# Nine groups of seven bits are what a signed 64-bit integer holds.
_MAX_GROUPS = 9


def encode_varint(value: int) -> bytes:
    """One non-negative number as a varint."""
    # Most numbers of a report are small.
    if 0 <= value < len(_SHORT):
        return _SHORT[value]
    # A varint has no sign, and shifting a negative number right never ends.
    if value < 0:
        raise ReportError(f"a report stores no negative numbers, got {value}.")
    return _groups_of(value)


def _groups_of(value: int) -> bytes:
    # Built from the last group, which carries the mark, to the first, then turned
    # round.
    groups = [value & 0x7F | 0x80]
    while value := value >> 7:
        groups.append(value & 0x7F)
    return bytes(reversed(groups))


_SHORT = [_groups_of(value) for value in range(2048)]


def encode_varints(values: Iterable[int]) -> bytes:
    """Numbers as one varint after the other."""
    known = tuple(values)
    # Most lists are of small numbers only: these are looked up without a call for each.
    if known and min(known) >= 0 and max(known) < len(_SHORT):
        return b"".join(map(_SHORT.__getitem__, known))
    return b"".join(map(encode_varint, known))


def decode_ids(blob: bytes) -> tuple[int, ...]:
    """The numbers of a short blob of varints, quicker than through an array."""
    values: list[int] = []
    value = 0
    for group in blob:
        value = value << 7 | group & 0x7F
        if group >= 0x80:
            values.append(value)
            value = 0
    # Only the last byte of a number has its highest bit set.
    if blob and blob[-1] < 0x80:
        raise ReportError("a number list ends in the middle of a number.")
    return tuple(values)


def decode_varints(blob: bytes) -> IntArray:
    """The numbers of a blob of varints."""
    groups = np.frombuffer(blob, np.uint8)
    ends = np.flatnonzero(groups >= 0x80)
    if groups.size and (not ends.size or ends[-1] != groups.size - 1):
        raise ReportError("a number list ends in the middle of a number.")
    lengths = np.diff(ends, prepend=-1)
    if lengths.max(initial=0) > _MAX_GROUPS:
        raise ReportError("a number list holds a number of more than 63 bits.")
    # Byte place by byte place over all numbers at once: files hold thousands of
    # vectors, and a loop over bytes in Python is what opening a report would wait for.
    values = np.zeros(ends.size, np.int64)
    for place in range(int(lengths.max(initial=0))):
        reaches = lengths > place
        group = groups[ends[reaches] - place] & 0x7F
        values[reaches] += group.astype(np.int64) << (7 * place)
    return values


def merge_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The same vector without empty runs and equal neighbours."""
    merged: list[Run] = []
    last: int | None = None
    for count, value in runs:
        if not count:
            continue
        if value == last:
            merged[-1] = (merged[-1][0] + count, value)
        else:
            merged.append((count, value))
            last = value
    return tuple(merged)


def encode_rle(runs: Runs) -> bytes:
    """A run vector as an rle blob."""
    # A vector that came from a file goes back byte for byte, without being decoded.
    if isinstance(runs, StoredRuns):
        return runs.blob
    return _encode_runs(tuple(runs))


# Repeated layers have the same vectors. The limit bounds memory.
@lru_cache(maxsize=16384)
def _encode_runs(runs: tuple[Run, ...]) -> bytes:
    parts: list[bytes] = []
    for is_single, group in groupby(merge_runs(runs), key=lambda run: run[0] == 1):
        # Neighbouring single values share one header; a header for each would double
        # them.
        if is_single:
            values = [value for _, value in group]
            parts += map(encode_varint, [2 * len(values) + 1, *values])
        else:
            for count, value in group:
                parts += encode_varint(2 * count), encode_varint(value)
    return b"".join(parts)


def decode_rle(blob: bytes) -> tuple[Run, ...]:
    """The run vector of an rle blob."""
    numbers: list[int] = decode_varints(blob).tolist()
    runs: list[Run] = []
    position = 0
    while position < len(numbers):
        length, is_single = divmod(numbers[position], 2)
        stop = position + 1 + (length if is_single else 1)
        if stop > len(numbers):
            raise ReportError("a run list ends in the middle of a run.")
        values = numbers[position + 1 : stop]
        runs += [(1 if is_single else length, value) for value in values]
        position = stop
    return merge_runs(runs)


def encode_packed(runs: Runs) -> bytes:
    """A run vector as one varint a tile."""
    return b"".join(encode_varint(value) * count for count, value in runs)


def decode_packed(blob: bytes) -> tuple[Run, ...]:
    """The run vector of a blob with one varint a tile."""
    return runs_of(decode_varints(blob))


def encode_ascending(ids: Iterable[int]) -> bytes:
    """Ids in ascending order as rle over their differences."""
    previous = 0
    runs: list[Run] = []
    for number in ids:
        runs.append((1, number - previous))
        previous = number
    return encode_rle(runs)


def decode_ascending(blob: bytes) -> tuple[int, ...]:
    """The ids behind a blob of differences."""
    return tuple(accumulate(array_of(decode_rle(blob)).tolist()))


def runs_of(array: npt.ArrayLike) -> tuple[Run, ...]:
    """The run vector of an array over tiles."""
    values = np.asarray(array, np.int64)
    if not values.size:
        return ()
    # A first value that differs from what is put in front makes the first run begin at
    # 0.
    starts = np.flatnonzero(np.diff(values, prepend=values[0] - 1))
    counts = np.diff(starts, append=values.size)
    return tuple(zip(counts.tolist(), values[starts].tolist(), strict=True))


def array_of(runs: Runs) -> IntArray:
    """The array over tiles of a run vector."""
    counts = [count for count, _ in runs]
    return np.repeat(np.array([value for _, value in runs], np.int64), counts)


def length_of(runs: Runs) -> int:
    """How many tiles a run vector covers."""
    return sum(count for count, _ in runs)


def sum_of(runs: Runs) -> int:
    """The sum of a run vector over its tiles."""
    return sum(count * value for count, value in runs)


def max_of(runs: Runs) -> int:
    """The largest value of a run vector, 0 where it is empty."""
    return max((value for count, value in runs if count), default=0)


def zip_runs(*vectors: Runs) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Walk vectors of equal length together: `(count, one value of each)`."""
    supplies = [iter(runs) for runs in vectors]
    # What is left of the run at which each vector stands, and its value.
    lefts, values = [0] * len(vectors), [0] * len(vectors)
    while True:
        for index, left in enumerate(lefts):
            while not left:
                following = next(supplies[index], None)
                if following is None:
                    return
                left, values[index] = following
            lefts[index] = left
        # Every place where one of the vectors changes is a border of the walk: between
        # two of them all values stay.
        count = min(lefts)
        yield count, tuple(values)
        lefts = [left - count for left in lefts]


class StoredRuns(Sequence[Run]):
    """A run vector read from a file, decoded when it is first looked at.

    A file may hold a vector for every step and chip; a reader that wants only
    names and totals never pays for them.
    """

    def __init__(self, blob: bytes) -> None:
        self.blob = blob

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The decoded runs."""
        return decode_rle(self.blob)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Run, ...]: ...
    def __getitem__(self, index: int | slice) -> Run | tuple[Run, ...]:
        return self.runs[index]

    def __len__(self) -> int:
        return len(self.runs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.runs == tuple(other)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def __hash__(self) -> int:
        # Equal to the tuple of its runs, so it has to hash like one.
        return hash(self.runs)

    def __repr__(self) -> str:
        return f"StoredRuns({self.runs!r})"
