"""Published programs written by hand, with their published cycle estimates."""

from __future__ import annotations

from collections.abc import Iterator

from popple.program import (
    Codelet,
    ComputeSet,
    Exchange,
    Execute,
    PlacedVertex,
    Program,
    Sequence,
    Thread,
    TileVector,
    Variable,
    vertex_groups,
)
from popple.sim import Simulation, simulate
from popple.target import load_target
from tests.sim.machines import LATENCY

TILES = 1472


def on_first_tiles(*values: int) -> TileVector:
    return TileVector.of([*((1, value) for value in values), (TILES - len(values), 0)])


def suffix_sums() -> Program:
    """Tutorial 3: element i of v2 is the sum of v1 from i on; element i on tile i.

    Each vertex reads elements i to 3, all but the first from other tiles, and every
    element but the first is sent (once, to all who want it).
    """
    codelet = Codelet("SumVertex", Thread.WORKER)
    vertices = [PlacedVertex(codelet, tile, cycles=20) for tile in range(4)]
    gather = Exchange(
        "gather",
        sent_by_tile=on_first_tiles(0, 4, 4, 4),
        received_by_tile=on_first_tiles(12, 8, 4, 0),
        messages_by_tile=on_first_tiles(3, 2, 1, 0),
        reads=("v1",),
        writes=("edges",),
    )
    compute_set = ComputeSet("computeSet", vertex_groups(vertices, TILES))
    execute = Execute(compute_set, ("v1", "edges"), ("v2",))
    variables = [
        Variable("v1", on_first_tiles(4, 4, 4, 4)),
        Variable("v2", on_first_tiles(4, 4, 4, 4)),
        Variable("edges", on_first_tiles(12, 8, 4, 0)),
    ]
    named = {variable.name: variable for variable in variables}
    return Program("tutorial 3", 1, TILES, named, Sequence((gather, execute)))


def test_suffix_sums_take_120_tile_cycles() -> None:
    simulation = simulate(suffix_sums(), load_target("gc200"))
    assert simulation.cost.compute_cycles == 6 * 20
    gather, execute = simulation.executed_steps()
    assert execute.cycles_by_tile == on_first_tiles(120, 120, 120, 120)
    # Three words and six control cycles on tile 0, nothing to receive on tile 3.
    assert gather.cycles_by_tile[0] == LATENCY + 6
    assert gather.cycles_by_tile[3] == LATENCY + 1


ROWS, COLUMNS, SPLIT = 10_000, 1_000, 7


def dealt(num_vertices: int, codelet: Codelet, cycles: int) -> Iterator[PlacedVertex]:
    """Vertices over all tiles, the first tiles one more than the others."""
    for index in range(num_vertices):
        yield PlacedVertex(codelet, index % TILES, cycles)


def matrix_vector() -> Program:
    """Tutorial 6: each row of the matrix in 7 parts, partial sums, then a reduction."""
    # ceil(1000 / 7) = 143 columns a part, 5 + (143 + 1) div 2 = 77 worker cycles.
    part = Codelet("DotProductVertex", Thread.WORKER)
    # 7 partial sums a row: 5 + (7 + 1) div 2 = 9 worker cycles.
    reduce = Codelet("ReduceVertex", Thread.WORKER)
    parts = ComputeSet("mulCS", vertex_groups(dealt(ROWS * SPLIT, part, 77), TILES))
    sums = ComputeSet("reduceCS", vertex_groups(dealt(ROWS, reduce, 9), TILES))
    vector = TileVector.constant(TILES, 143 * 4)
    partials = TileVector.constant(TILES, 7 * SPLIT * 4)  # 7 rows a tile at most
    steps = (
        Exchange("vector", vector, vector),
        Execute(parts),
        Exchange("partials", partials, partials),
        Execute(sums),
    )
    return Program("tutorial 6", 1, TILES, {}, Sequence(steps))


def simulate_matrix_vector() -> Simulation:
    return simulate(matrix_vector(), load_target("gc200"))


def test_matrix_vector_estimates_are_the_published_ones() -> None:
    rows = [
        row.cycles_by_tile.maximum for row in simulate_matrix_vector().executed_steps()
    ]
    vector, compute, partials, reduction = rows
    # 70,000 vertices: 48 on the fullest tile, 8 for a worker, 8 x 6 x 77.
    assert compute == 3696
    # 10,000 rows: 7 on the fullest tile, 2 for a worker, 2 x 6 x 9.
    assert reduction == 108
    # Published without the two control instructions of the message.
    assert (vector - LATENCY - 2, partials - LATENCY - 2) == (143, 49)
    assert compute + reduction + 143 + 49 == 3996


def test_matrix_vector_phases_add_up() -> None:
    cost = simulate_matrix_vector().cost
    assert cost.compute_cycles == 3696 + 108
    assert cost.exchange_cycles == 143 + 49 + 2 * (LATENCY + 2)
