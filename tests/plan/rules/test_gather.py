"""Gather: the split of the table is the cheapest of those listed."""

from popple.graph import DType, TensorType
from popple.plan.mapping import linear_mapping
from popple.plan.opplan import Compute
from popple.plan.rules.gather import Lookup, Split, choose_split, list_splits
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, make

INDICES = TensorType(DType.I32, (48,))


def test_splits_use_no_more_tiles_than_there_are() -> None:
    lookup = Lookup(table_rows=1000, columns=64, num_rows=48, element_bytes=2)
    splits = list(list_splits(lookup, 1472))
    # 64 halves are 16 words: 1, 2, 4, 8 or 16 column cuts.
    assert [split.columns for split in splits] == [1, 2, 4, 8, 16]
    assert all(split.num_tiles <= 1472 for split in splits)


def test_the_cheapest_split_comes_first() -> None:
    lookup = Lookup(table_rows=1000, columns=64, num_rows=48, element_bytes=2)
    ranked = choose_split(lookup, 1472, 6)
    assert [cycles for cycles, _ in ranked] == sorted(cycles for cycles, _ in ranked)
    # 16 column cuts leave 92 row ranges: one index found, 47 missed, 4 columns a row:
    # 6 (30 + 19 + 4 + 8 x 47).
    assert ranked[0] == (6 * (30 + 23 + 376), Split(92, 16))


def test_a_new_table_is_wished_in_the_split() -> None:
    signature = make("gather", [f16(1000, 64), INDICES], [f16(48, 64)])
    made = plan(signature, (None, linear_mapping(INDICES, bow().chip)))
    wish = made.inputs[0]
    assert wish is not None
    assert wish.layout == "table[92x16]"
    assert wish.bytes_by_tile.total == 1000 * 64 * 2
    assert len(made.runners_up) == 3


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
