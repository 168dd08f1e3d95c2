"""Gather and scatter: the split takes the least memory, stages follow from it."""

from popple.graph import DType, TensorType
from popple.plan.blocks.lookup import Lookup, Split, choose_splits, share_of
from popple.plan.mapping import linear_mapping
from popple.plan.opplan import Compute, Move, OpPlan
from popple.target import load_target
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, f32, make

INDICES = TensorType(DType.I32, (48,))
MANY = TensorType(DType.I32, (48_000,))


def names(made: OpPlan) -> list[str]:
    return [step.name for step in made.steps if isinstance(step, Compute | Move)]


def best(lookup: Lookup, target: str = "gc200") -> Split:
    return choose_splits(lookup, load_target(target).chip, 0.6)[0][1]


def test_splits_are_those_of_poplibs() -> None:
    # Release 2.0 on its two benchmarks, its memory written down by hand.
    assert best(Lookup(1000, 200, 21_600, DType.F16), "gc2") == Split(1, 100, 12)
    assert best(Lookup(1000, 200, 21_600, DType.F16)) == Split(1, 100, 14)
    assert best(Lookup(100_000, 200, 11_520, DType.F16)) == Split(14, 100)


def test_splits_use_no_more_tiles_than_there_are() -> None:
    ranked = choose_splits(Lookup(1000, 64, 48, DType.F16), bow().chip, 0.6)
    assert [cost for cost, _ in ranked] == sorted(cost for cost, _ in ranked)
    assert all(split.num_tiles <= 1472 for _, split in ranked)


def test_a_share_is_what_the_fullest_tile_has() -> None:
    # 32 words of two halves over 10 tiles: 4 words. 21 rows of them, 84 words, of
    # which one of two shares owns 42.
    share = share_of(Lookup(1000, 64, 48, DType.F16), Split(48, 10, 2))
    assert (share.num_indices, share.rows, share.columns) == (24, 21, 8)
    assert (share.owned_rows, share.owned_elements) == (1, 84)


def test_splits_that_take_too_much_come_last() -> None:
    # The cheapest takes 7.7 % of a tile while it runs.
    lookup = Lookup(100_000, 64, 4096, DType.F16)
    free, tight = (
        choose_splits(lookup, bow().chip, proportion)[0][1]
        for proportion in (0.6, 0.05)
    )
    assert free != tight


def test_a_new_table_is_wished_in_the_split() -> None:
    signature = make("gather", [f16(1000, 64), INDICES], [f16(48, 64)])
    made = plan(signature, (None, linear_mapping(INDICES, bow().chip)))
    wish = made.inputs[0]
    assert wish is not None
    assert wish.bytes_by_tile.total == 1000 * 64 * 2
    assert len(made.runners_up) == 3


def test_ranges_of_rows_leave_candidates() -> None:
    signature = make("gather", [f16(100_000, 64), INDICES], [f16(48, 64)])
    assert names(plan(signature)) == [
        "indices/multicast",
        "candidates",
        "candidates/exchange",
        "rows",
        "rows/exchange",
    ]


def test_shares_of_indices_read_copies_of_the_table() -> None:
    signature = make("gather", [f16(100, 64), MANY], [f16(48_000, 64)])
    steps = names(plan(signature))
    assert "table/multicast" in steps
    assert "candidates/exchange" not in steps


def test_workers_share_the_indices_of_a_read() -> None:
    made = plan(make("gather", [f16(100_000, 64), INDICES], [f16(48, 64)]))
    lookup = next(step for step in made.steps if isinstance(step, Compute))
    (group,) = lookup.vertices
    assert group.count_by_tile.maximum == 6
    # 8 indices each, of one word of two halves: 30 + 8 (19 + 2).
    assert group.cycles_by_tile.maximum == 198


def test_partial_tables_are_floats_that_are_added_up() -> None:
    signature = make("scatter_add", [f16(48_000, 64), MANY], [f16(100, 64)])
    assert names(plan(signature)) == [
        "zero",
        "rows/exchange",
        "rows/cast",
        "partials/zero",
        "indices/multicast",
        "rows/multicast",
        "update",
        "partials/exchange",
        "sum",
        "table/cast",
        "add",
        "table/cast-back",
    ]


def test_floats_need_no_casts() -> None:
    signature = make("scatter_add", [f32(48_000, 64), MANY], [f32(100, 64)])
    assert not [name for name in names(plan(signature)) if name.endswith("/cast")]


def test_a_table_that_lies_somewhere_stays_there() -> None:
    signature = make("gather", [f16(1000, 64), INDICES], [f16(48, 64)])
    assert plan(signature).inputs == (None, None)


def test_scatter_without_a_table_starts_from_zeros() -> None:
    signature = make("scatter_add", [f16(48, 64), INDICES], [f16(1000, 64)])
    assert names(plan(signature))[0] == "zero"


def test_scatter_into_a_table_keeps_its_mapping() -> None:
    table = f16(1000, 64)
    signature = make("scatter_add", [table, INDICES, f16(48, 64)], [table])
    made = plan(signature)
    assert made.outputs[0] == linear_mapping(table, bow().chip)
    assert made.flops == 48 * 64
