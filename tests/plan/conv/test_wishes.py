"""Where plans want their operands: few readers' messages, and weights at the end."""

from __future__ import annotations

from popple.plan.opplan import OpPlan
from popple.program import TileVector
from tests.plan.conv.machines import plan_conv, plan_matmul


def wished(plan: OpPlan, position: int) -> TileVector:
    """Bytes by tile that a plan wants of an input."""
    mapping = plan.inputs[position]
    assert mapping is not None
    return mapping.bytes_by_tile


def held(vector: TileVector) -> list[int]:
    """What tiles that have anything have."""
    return [value for count, value in vector.runs for _ in range(count) if value]


def test_weights_lie_in_whole_blocks_on_the_last_tiles() -> None:
    plan = plan_conv("conv", (16, 64, 56, 56), (64, 64, 1, 1))
    weights = wished(plan, 1)
    # A block of 16 by 16 halves is what a vertex loads; 64 by 64 are 16 of them, each
    # of which has all tiles for readers.
    assert held(weights) == [512] * 16
    assert weights[0] == 0
    used = plan.outputs[0].bytes_by_tile
    last = max(tile for tile in range(len(used)) if used[tile])
    assert weights[last] == 512


def test_weights_that_one_tile_reads_lie_on_it() -> None:
    plan = plan_matmul((1, 4096), (4096, 4096))
    weights = wished(plan, 1)
    assert min(held(weights)) > 256
    assert len(held(weights)) > 1400


def test_inputs_of_many_readers_are_not_cut_into_less_than_a_least_size() -> None:
    plan = plan_matmul((16, 64), (64, 8192))
    inputs = held(wished(plan, 0))
    assert sum(inputs) == 16 * 64 * 2
    assert min(inputs) >= 128
