"""Programs by hand: how cells are dealt out, and what their rims cost."""

from __future__ import annotations

import pytest

from benchmarks.calibration.dot_products import matvec
from benchmarks.calibration.stencils import CELLS, STENCIL, Cells, Grid, sweep
from popple.program import Exchange, GlobalExchange, Program, Sequence
from popple.sim import simulate
from popple.target import load_target

TARGET = load_target("gc2")


def steps_of(program: Program) -> tuple[object, ...]:
    assert isinstance(program.main, Sequence)
    return program.main.steps


def rims(program: Program) -> Exchange:
    return next(step for step in steps_of(program) if isinstance(step, Exchange))


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_four_times_the_cells_take_four_times_as_long(cells: Cells) -> None:
    # 2 rows of 10 cells for the busiest worker, then 4 rows of 20.
    small, large = (
        simulate(sweep(Grid(side, side, cells), TARGET), TARGET).cost_by_op[STENCIL]
        for side in (340, 680)
    )
    assert large.cycles == pytest.approx(4 * small.cycles, rel=0.15)


def test_a_tile_in_the_middle_gets_the_cells_around_it() -> None:
    # 340 x 340 cells: 35 columns of tiles, 34 rows; most blocks are 10 by 9 or 10.
    received = rims(sweep(Grid(340, 340, CELLS["half4"]), TARGET)).received_by_tile
    # Six workers share the rows; each gets the corners of its own part as well.
    beside = 10 + 2 * 6
    assert received.maximum == 8 * (10 + 10 + beside + beside)


def test_workers_have_rims_of_their_own() -> None:
    grid = Grid(6, 12, CELLS["half4"], min_side=6)
    received = rims(sweep(grid, TARGET)).received_by_tile
    # Two tiles, one row for each worker: three cells of the other tile beside it.
    assert received.total == 8 * 2 * 6 * 3


def test_chips_send_each_other_whole_borders() -> None:
    target = load_target("dss8440", 4)
    program = sweep(Grid(200, 300, CELLS["float"], 4), target)
    step = next(s for s in steps_of(program) if isinstance(s, GlobalExchange))
    # Two by two chips of 100 by 150 cells of 16 bytes; a row for each worker, so that
    # each cell beside is in the rims of three.
    assert sorted(step.flows)[:2] == [(0, 1, 3 * 1600), (0, 2, 2400)]
    assert len(step.flows) == 8


def test_dot_products_are_spread_evenly() -> None:
    target = load_target("gc200")
    cost = simulate(matvec(1472, 100, 6, target), target).cost_by_op["dot"]
    # Six vertices a tile, one for each worker: 17 elements of 4 instructions, and 20.
    assert cost.compute_cycles == 6 * (17 * 4 + 20)
