"""Gather: the split of the table is the cheapest of those listed."""

from popple.graph import DType, TensorType
from popple.plan.lookup import (
    Lookup,
    Split,
    choose_split,
    estimate_cycles,
    list_splits,
    lookup_cycles,
    memory_bytes,
)
from popple.plan.mapping import linear_mapping
from popple.plan.opplan import Compute, Move
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, make

INDICES = TensorType(DType.I32, (48,))


LOOKUP = Lookup(table_rows=1000, columns=64, num_rows=48, dtype=DType.F16)


def test_splits_use_no_more_tiles_than_there_are() -> None:
    splits = list(list_splits(LOOKUP, 1472))
    # 64 halves are 16 words: 1, 2, 4, 8 or 16 column cuts; 48 indices: 1 to 32 shares.
    assert {split.columns for split in splits} == {1, 2, 4, 8, 16}
    assert {split.shares for split in splits} == {1, 2, 4, 8, 16, 32}
    assert all(split.num_tiles <= 1472 for split in splits)


def test_the_cheapest_split_comes_first() -> None:
    ranked = choose_split(LOOKUP, bow().chip, 0.6)
    assert [cycles for cycles, _ in ranked] == sorted(cycles for cycles, _ in ranked)


def test_one_share_of_the_indices_needs_no_copy_of_the_table() -> None:
    # 16 column cuts leave 92 row ranges: one index found, 47 missed, 4 columns a row:
    # 6 (30 + 19 + 4 + 8 x 47), and 48 indices of 4 bytes at 4 bytes a cycle.
    split = Split(92, 16)
    assert lookup_cycles(LOOKUP, split, 6) == 6 * (30 + 23 + 376)
    assert estimate_cycles(LOOKUP, split, bow().chip) == 6 * (30 + 23 + 376) + 48
    assert memory_bytes(LOOKUP, split) == 48 * 4 + 4 * 2


def test_many_indices_are_shared_out() -> None:
    few = Lookup(1000, 64, 48, DType.F16)
    many = Lookup(1000, 64, 48_000, DType.F16)
    shares = [choose_split(each, bow().chip, 0.6)[0][1].shares for each in (few, many)]
    assert shares[0] < shares[1]


def test_less_memory_makes_another_split() -> None:
    lookup = Lookup(400_000, 64, 48_000, DType.F16)
    free, tight = (
        choose_split(lookup, bow().chip, proportion)[0][1] for proportion in (0.6, 0.05)
    )
    assert memory_bytes(lookup, tight) < memory_bytes(lookup, free)


def test_a_new_table_is_wished_in_the_split() -> None:
    signature = make("gather", [f16(1000, 64), INDICES], [f16(48, 64)])
    made = plan(signature, (None, linear_mapping(INDICES, bow().chip)))
    wish = made.inputs[0]
    assert wish is not None
    assert wish.bytes_by_tile.total == 1000 * 64 * 2
    assert len(made.runners_up) == 3


def test_partial_tables_are_added_up() -> None:
    indices = TensorType(DType.I32, (48_000,))
    signature = make("scatter_add", [f16(48_000, 64), indices], [f16(1000, 64)])
    *_, move, add = plan(signature).steps
    assert isinstance(move, Move)
    assert isinstance(add, Compute)
    assert (move.name, add.name) == ("partials/exchange", "sum")


def test_a_table_that_lies_somewhere_stays_there() -> None:
    signature = make("gather", [f16(1000, 64), INDICES], [f16(48, 64)])
    assert plan(signature).inputs == (None, None)


def test_scatter_without_a_table_starts_from_zeros() -> None:
    signature = make("scatter_add", [f16(48, 64), INDICES], [f16(1000, 64)])
    first = plan(signature).steps[0]
    assert isinstance(first, Compute)
    assert first.name == "zero"


def test_scatter_into_a_table_keeps_its_mapping() -> None:
    table = f16(1000, 64)
    signature = make("scatter_add", [table, INDICES, f16(48, 64)], [table])
    made = plan(signature)
    assert made.outputs[0] == linear_mapping(table, bow().chip)
    assert made.flops == 48 * 64
