"""I/O tiles: fewer tiles compute, host traffic runs beside them."""

from __future__ import annotations

import pytest

from popple.errors import UsageError
from popple.graph import Graph
from popple.plan import IoOptions, Overlap, PlanOptions, plan_graph
from popple.program import (
    Exchange,
    Execute,
    Parallel,
    Program,
    Repeat,
    Step,
    StreamCopy,
    children_of,
    verify,
)
from popple.sim import simulate
from tests.plan.graphs import inference_pipeline, parse
from tests.plan.machines import bow

# Forty ops, so that there is something to hide traffic behind.
CHAIN = "\n".join(
    [
        'graph "chain" accumulation=4 device_iterations=3 {',
        "  input %v0 : f32[64,96]",
        *(
            f"  tanh %v{i + 1} : %v{i + 1} : f32[64,96] = (%v{i}) forward 0/0"
            for i in range(40)
        ),
        "  output %v40",
        "}",
        "",
    ]
)


def lowered(
    overlap: Overlap, num_tiles: int = 32, graph: Graph | None = None
) -> Program:
    options = PlanOptions(io=IoOptions(num_tiles, overlap))
    given = graph or parse(CHAIN)
    program = plan_graph(given, bow(given.execution.num_chips), options).program
    verify(program)
    return program


def leaves(step: Step, times: int = 1) -> list[tuple[Step, int]]:
    times *= step.count if isinstance(step, Repeat) else 1
    inner = children_of(step)
    if not inner:
        return [(step, times)]
    return [leaf for child in inner for leaf in leaves(child, times)]


def num_copies(program: Program) -> int:
    return sum(n for step, n in leaves(program.main) if isinstance(step, StreamCopy))


@pytest.mark.parametrize("overlap", list(Overlap))
def test_every_micro_batch_arrives_and_leaves_once(overlap: Overlap) -> None:
    assert num_copies(lowered(overlap)) == 2 * 4 * 3


def test_only_the_tiles_left_compute() -> None:
    main = lowered(Overlap.MICRO_BATCHES).main
    for step, _ in leaves(main):
        if isinstance(step, Execute):
            by_tile = step.compute_set.vertices[0].count_by_tile
            assert by_tile.part(1440, 1472).is_zero
        if isinstance(step, StreamCopy):
            assert step.bytes_by_tile.part(0, 1440).is_zero


def test_exchanges_join_io_tiles_and_the_others() -> None:
    moves = [
        s
        for s, _ in leaves(lowered(Overlap.MICRO_BATCHES).main)
        if isinstance(s, Exchange)
    ]
    arriving = moves[0]
    assert arriving.sent_by_tile.total == arriving.received_by_tile.total == 64 * 96 * 4
    assert arriving.sent_by_tile.maximum == 768  # 24,576 bytes on 32 tiles


def cycles(overlap: Overlap) -> int:
    return simulate(lowered(overlap), bow()).cost.cycles


def test_more_overlap_is_faster() -> None:
    waiting, inner, everywhere = (cycles(overlap) for overlap in Overlap)
    # 12 micro-batches wait for host traffic 12 times, 3 times or once.
    assert waiting > inner > everywhere


def test_traffic_beside_nothing_goes_straight_to_the_tiles() -> None:
    steps = [step for step, _ in leaves(lowered(Overlap.NONE).main)]
    assert not any(isinstance(step, Exchange) for step in steps)


def test_a_chip_is_never_busier_than_the_run_is_long() -> None:
    simulation = simulate(lowered(Overlap.ITERATIONS), bow())
    assert simulation.timing.busy_by_chip[0][0] <= simulation.cost.cycles


def test_stages_of_a_pipeline_run_beside_traffic() -> None:
    program = lowered(Overlap.MICRO_BATCHES, graph=inference_pipeline(6))
    assert {"traffic0", "traffic1"} <= set(program.functions)
    found = [s for s in children_of(program.main) if isinstance(s, Repeat)]
    (stages, _copies) = children_of(found[0].body)
    assert isinstance(stages, Parallel)
    assert stages.name == "overlap"


def test_overlap_needs_tiles() -> None:
    with pytest.raises(UsageError, match="needs I/O tiles"):
        IoOptions(0, Overlap.ITERATIONS)
