"""Graphs on chips that take turns become programs with the right loops."""

from collections.abc import Iterator

import pytest

from popple.errors import PlanError
from popple.graph import Graph
from popple.plan import PlannedProgram, plan_graph
from popple.program import (
    Category,
    Exchange,
    Execute,
    GlobalExchange,
    Repeat,
    Sequence,
    Step,
    StreamCopy,
    WriteUndef,
    accesses_of,
    children_of,
    verify,
)
from popple.program.parts import vectors_of
from tests.plan.graphs import linear_layer, parse, pipeline, sharded
from tests.plan.machines import bow, bow_with_tiles

TILES = bow().chip.num_tiles


def lower(graph: Graph) -> PlannedProgram:
    planned = plan_graph(graph, bow(graph.execution.num_chips))
    verify(planned.program)
    return planned


def leaves(step: Step) -> Iterator[Step]:
    children = children_of(step)
    if not children:
        yield step
    for child in children:
        yield from leaves(child)


def test_micro_batches_are_repeated_inside_iterations() -> None:
    main = lower(linear_layer()).program.main
    assert isinstance(main, Repeat)
    assert main.count == 3
    assert isinstance(main.body, Sequence)
    accumulation, update = main.body.steps
    assert isinstance(accumulation, Repeat)
    assert accumulation.count == 4
    assert {leaf.op for leaf in leaves(update) if isinstance(leaf, Execute)} == {"u"}


def test_inputs_arrive_first_and_outputs_leave_last() -> None:
    main = lower(linear_layer()).program.main
    assert isinstance(main, Repeat)
    assert isinstance(main.body, Sequence)
    steps = list(leaves(main.body.steps[0]))
    names = [step.name for step in steps if isinstance(step, StreamCopy)]
    assert names == ["x/stream_in", "z/stream_out"]
    assert isinstance(steps[0], StreamCopy)
    assert isinstance(steps[-1], StreamCopy)


def test_memory_is_conserved() -> None:
    graph = linear_layer()
    variables = lower(graph).program.variables
    for name in ("x", "w", "b", "y", "z", "bg"):
        held = variables[name].bytes_by_tile.total
        assert held == graph.type_of(name).num_bytes


def test_views_and_results_in_place_have_no_variable() -> None:
    variables = lower(linear_layer()).program.variables
    assert "wt" not in variables
    assert "bu" not in variables


def test_given_values_are_always_live_and_others_are_not() -> None:
    variables = lower(linear_layer()).program.variables
    live = {name for name, v in variables.items() if v.is_always_live}
    assert live == {"w", "b"}


def test_leaves_of_an_op_touch_its_values() -> None:
    steps = list(leaves(lower(linear_layer()).program.main))
    add = [s for s in steps if isinstance(s, Exchange | Execute) and s.op == "z"]
    assert all({"y", "b"} <= set(step.reads) for step in add)
    assert [("z" in step.writes) for step in add] == [False, True]


def test_temporaries_are_written_before_they_are_read() -> None:
    program = lower(pipeline()).program
    written: set[str] = set()
    for row in program.steps:
        if isinstance(row.step, Execute | Exchange):
            temporary = {name for name in row.step.reads if "/" in name}
            assert temporary <= written
            written.update(row.step.writes)


def test_sharded_ops_work_on_the_tiles_of_their_chip() -> None:
    program = lower(sharded()).program
    work = {s.op: s for s in leaves(program.main) if isinstance(s, Execute)}
    first, second = (
        work[name].compute_set.vertices[0].count_by_tile for name in ("a", "d")
    )
    assert first.part(0, TILES) == second.part(TILES, 2 * TILES)
    assert first.part(TILES, 2 * TILES).is_zero
    assert second.part(0, TILES).is_zero


def test_copies_between_chips_are_flows() -> None:
    program = lower(sharded()).program
    (copy,) = (s for s in leaves(program.main) if isinstance(s, GlobalExchange))
    assert copy.flows == ((0, 1, 64 * 96 * 4),)
    assert copy.sent_by_tile.part(0, TILES).total == 64 * 96 * 4
    assert copy.received_by_tile.part(TILES, 2 * TILES).total == 64 * 96 * 4


def test_constants_exist_on_every_chip_that_reads_them() -> None:
    variables = lower(sharded()).program.variables
    assert variables["c"].category is variables["c@1"].category is Category.CONSTANT
    assert variables["c@1"].bytes_by_tile.part(TILES, 2 * TILES).total == 96 * 4


def test_too_few_chips_are_refused() -> None:
    with pytest.raises(PlanError, match="needs 2 chips, but the target has 1"):
        plan_graph(sharded(), bow())


def test_programs_do_not_grow_with_the_number_of_tiles() -> None:
    def num_runs(num_tiles: int) -> int:
        program = plan_graph(linear_layer(), bow_with_tiles(num_tiles)).program
        vectors = [v for row in program.steps for v in vectors_of(row.step)]
        vectors += [variable.bytes_by_tile for variable in program.variables.values()]
        return sum(len(vector.runs) for vector in vectors)

    assert num_runs(14720) <= 1.2 * num_runs(1472)


def test_lowering_is_deterministic() -> None:
    assert lower(pipeline()).program == lower(pipeline()).program


DEEP_PRODUCT = """graph "deep" {
  input %x : f16[256,4096]
  weight %w : f16[4096,256]
  matmul %y : %y : f16[256,256] = (%x, %w) forward 0/0
  output %y
}
"""


def test_the_sums_of_a_product_do_not_need_its_operands() -> None:
    steps = [row.step for row in lower(parse(DEEP_PRODUCT)).program.steps]
    moves = {step.name: step for step in steps if isinstance(step, Exchange)}
    assert "x" in moves["y/exchange inputs"].reads + moves["y/exchange weights"].reads
    assert not {"x", "w"} & set(moves["y/exchange partials 1"].reads)


def test_what_no_step_reads_is_over_when_its_step_is() -> None:
    program = lower(parse(DEEP_PRODUCT)).program
    read = {name for row in program.steps for name in accesses_of(row.step)[0]}
    steps = [row.step for row in program.steps]
    ended = {step.variable for step in steps if isinstance(step, WriteUndef)}
    temporaries = {name for name in program.variables if name.startswith("y/")}
    assert temporaries <= read | ended
    assert not read & ended


NORM = """graph "norm" {
  input %x : f16[64,96]
  weight %g : f16[96]
  layer_norm %n : %y : f16[64,96] ; %m : f32[64,1] = (%x, %g) {"num_statistics": 64} 0/0
  output %y
}
"""


def test_results_that_nobody_reads_are_over_with_their_op() -> None:
    """Inference does not read the mean that a norm gives back."""
    graph = parse(NORM.replace("} 0/0", "} forward 0/0"))
    steps = [row.step for row in lower(graph).program.steps]
    ended = [step.variable for step in steps if isinstance(step, WriteUndef)]
    assert "m" in ended
    assert "y" not in ended
