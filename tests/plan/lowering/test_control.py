"""Calls, loops and branches as steps: planned once, timed per call."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popple.graph import Graph, parse_graph, verify
from popple.pipeline import model_graph
from popple.plan.lowering.plan_ops import plan_ops
from popple.plan.planner import Planner
from popple.program import (
    Call,
    Exchange,
    Execute,
    If,
    Program,
    Repeat,
    RepeatWhile,
    Step,
    Switch,
    children_of,
)
from popple.program import verify as verify_program
from popple.sim import Simulation
from tests.plan.machines import bow

LAYER = """
function "layer" {{
  argument %x : f16[{rows},{width}]
  argument %w : f16[{width},{width}]
  matmul %product : %y : f16[{rows},{width}] = (%x, %w) forward chip=0 stage=0
  relu %act : %z : f16[{rows},{width}] = (%y) forward chip=0 stage=0
  output %z
}}
"""
FLAT = """
  matmul %product{i} : %y{i} : {type} = (%{x}, %w{i}) forward chip=0 stage=0
  relu %act{i} : %z{i} : {type} = (%y{i}) forward chip=0 stage=0
"""
CALL = """
  call %layer{i} : %z{i} : {type} = (%{x}, %w{i}) {{"function": "layer"}} \
forward chip={chip} stage=0
"""


def stack(num_layers: int, form: str, rows: int = 64, width: int = 256) -> Graph:
    """Equal layers, one after the other: written out, or as calls."""
    kind = f"f16[{rows},{width}]"
    given = [f"  weight %w{i} : f16[{width},{width}]" for i in range(num_layers)]
    ops = [
        form.format(i=i, x=f"z{i - 1}" if i else "x", type=kind, chip=0)
        for i in range(num_layers)
    ]
    body = "\n".join([f"  input %x : {kind}", *given, *ops])
    text = f'graph "g" {{\n{body}\n  output %z{num_layers - 1}\n}}\n'
    if form == CALL:
        text += LAYER.format(rows=rows, width=width)
    graph = parse_graph(text)
    verify(graph)
    return graph


def simulated(graph: Graph) -> Simulation:
    return model_graph(graph, bow(graph.execution.num_chips)).simulation


def steps_in(step: Step) -> list[Step]:
    return [step, *(inner for child in children_of(step) for inner in steps_in(child))]


def steps_of(program: Program) -> list[Step]:
    roots = [program.main, *program.functions.values()]
    return [step for root in roots for step in steps_in(root)]


def work_cycles(simulation: Simulation) -> int:
    """Cycles of all ops but calls, loops and branches."""
    costs = simulation.cost_by_op.items()
    return sum(cost.cycles for name, cost in costs if "/" in name)


@given(rows=st.sampled_from([16, 64, 200]), width=st.sampled_from([64, 256, 300]))
@settings(max_examples=6, deadline=None)
def test_a_function_run_in_one_place_costs_what_its_ops_cost(
    rows: int, width: int
) -> None:
    flat = simulated(stack(1, FLAT, rows, width))
    called = simulated(stack(1, CALL, rows, width))
    assert called.cost == flat.cost
    # The call itself takes a few instructions.
    assert 0 <= called.peak_tile_bytes - flat.peak_tile_bytes <= 16


def test_equal_layers_are_planned_once_and_run_each_time() -> None:
    planner = Planner(bow())
    plan_ops(stack(48, CALL), planner)
    assert planner.num_plans == 2  # the product and its activation
    one, many = (simulated(stack(n, CALL)) for n in (2, 48))
    assert work_cycles(many) == 24 * work_cycles(one)


def test_code_of_a_function_exists_once() -> None:
    few, many = (simulated(stack(n, CALL)).program for n in (2, 48))
    assert list(few.functions) == list(many.functions) == ["layer()"]
    assert few.functions == many.functions


def test_several_callers_copy_arguments_in_and_results_out() -> None:
    program = simulated(stack(2, CALL)).program
    copies = {
        step.compute_set.name: (step.reads, step.writes)
        for step in steps_of(program)
        if isinstance(step, Execute) and "/copy" in step.compute_set.name
    }
    assert copies["layer0/copy arguments"][1] == ("layer()/x", "layer()/w")
    assert copies["layer1/copy results"] == (("layer()/z",), ("z1",))
    # The second layer's input lies where the first one left it, not where the
    # function wants it.
    moves = [s for s in steps_of(program) if isinstance(s, Exchange)]
    (moved,) = [move for move in moves if move.name == "layer1/move arguments"]
    assert moved.writes == ("layer()/x",)


def test_chips_have_the_function_each() -> None:
    text = stack_on_chips()
    program = simulated(parse_graph(text)).program
    assert sorted(program.functions) == ["layer()@0", "layer()@1"]
    verify_program(program)


def stack_on_chips() -> str:
    calls = "".join(
        CALL.format(i=i, x="x" if i == 0 else f"c{i}", type="f16[64,256]", chip=i // 2)
        + (
            f"  chip_copy %copy{i} : %c{i + 1} : f16[64,256] = (%z{i}) "
            f'{{"source": 0}} forward chip=1 stage=0\n'
            if i == 1
            else f"  copy %same{i} : %c{i + 1} : f16[64,256] = (%z{i}) forward "
            f"chip={i // 2} stage=0\n"
        )
        for i in range(4)
    )
    weights = "".join(f"  weight %w{i} : f16[256,256]\n" for i in range(4))
    head = 'graph "g" strategy=sharded num_chips=2 {\n  input %x : f16[64,256]\n'
    tail = "  output %c4\n}\n"
    return head + weights + calls + tail + LAYER.format(rows=64, width=256)


LOOP = """
graph "g" {{
  input %x : f16[64,256]
  weight %w : f16[256,256]
  {kind} %loop : %z : f16[64,256] = (%x, %w) {attrs} forward chip=0 stage=0
  output %z
}}
function "test" {{
  argument %x : f16[64,256]
  argument %w : f16[256,256]
  is_finite %f : %ok : bool[64,256] = (%x) forward chip=0 stage=0
  reduce_all %all : %yes : bool[] = (%ok) {{"dims": [0, 1]}} forward chip=0 stage=0
  output %yes
}}
""" + LAYER.format(rows=64, width=256).replace("{", "{{").replace("}", "}}")


def loop(kind: str, count: int) -> Graph:
    condition = ', "condition": "test"' if kind == "while" else ""
    attrs = f'{{"function": "layer", "count": {count}{condition}}}'
    graph = parse_graph(LOOP.format(kind=kind, attrs=attrs))
    verify(graph)
    return graph


@pytest.mark.parametrize("kind", ["repeat", "while"])
def test_cycles_of_a_loop_grow_with_its_rounds(kind: str) -> None:
    ten, twenty, thirty = (simulated(loop(kind, n)).cost.cycles for n in (10, 20, 30))
    assert twenty - ten == thirty - twenty > 0


@pytest.mark.parametrize("kind", ["repeat", "while"])
def test_a_long_loop_is_planned_as_a_short_one(kind: str) -> None:
    planners = [Planner(bow()) for _ in range(2)]
    for planner, count in zip(planners, (10, 1000), strict=True):
        plan_ops(loop(kind, count), planner)
    assert planners[0].num_plans == planners[1].num_plans
    short, long = (simulated(loop(kind, n)).program for n in (10, 1000))
    assert len(steps_of(short)) == len(steps_of(long))
    assert short.variables == long.variables


def test_a_loop_carries_its_results() -> None:
    program = simulated(loop("repeat", 10)).program
    (found,) = [s for s in steps_of(program) if isinstance(s, Repeat)]
    inner = steps_in(found.body)
    assert isinstance(inner[1], Call)
    carried = [s for s in inner[2:] if isinstance(s, Exchange | Execute)]
    assert carried[-1].writes == ("layer()/x",)
    # The weights stay the same, so the function reads those of the program.
    assert "layer()/w" not in program.variables


def test_a_condition_is_tested_before_every_round() -> None:
    program = simulated(loop("while", 10)).program
    (found,) = [s for s in steps_of(program) if isinstance(s, RepeatWhile)]
    assert (found.predicate, found.expected_count) == ("test()/yes", 10)
    assert any(isinstance(s, Call) for s in steps_in(found.condition))


BRANCH = """
graph "g" {{
  input %which : {selector}
  input %x : f16[64,256]
  branch %pick : %z : f16[64,256] = (%which, %x) {{"functions": {names}}} \
forward chip=0 stage=0
  output %z
}}
function "cheap" {{
  argument %x : f16[64,256]
  relu %r : %y : f16[64,256] = (%x) forward chip=0 stage=0
  output %y
}}
function "dear" {{
  argument %x : f16[64,256]
  exp %e : %t : f16[64,256] = (%x) forward chip=0 stage=0
  log %l : %y : f16[64,256] = (%t) forward chip=0 stage=0
  output %y
}}
"""


def test_a_branch_costs_its_dearer_side() -> None:
    text = BRANCH.format(selector="bool[]", names='["cheap", "dear"]')
    simulation = simulated(parse_graph(text))
    (found,) = [s for s in steps_of(simulation.program) if isinstance(s, If)]
    assert found.predicate == "which"
    assert "dear/e" in simulation.cost_by_op
    assert simulation.cost_by_op["dear/e"].cycles > 0
    assert "cheap/r" not in simulation.cost_by_op


def test_several_cases_are_a_switch() -> None:
    text = BRANCH.format(selector="i32[]", names='["cheap", "dear", "cheap"]')
    program = simulated(parse_graph(text)).program
    (found,) = [s for s in steps_of(program) if isinstance(s, Switch)]
    assert [number for number, _ in found.cases] == [0, 1]
    writes = [s.writes for s in steps_in(found) if isinstance(s, Execute)]
    assert sum(each == ("z",) for each in writes) == 3
