"""Outlining: ops planned alike on one chip share code, unless asked not to."""

from popple.plan import PlannedProgram, PlanOptions, plan_graph
from popple.program import Category, parse_program, render_program
from popple.sim import simulate
from tests.plan.graphs import parse, sharded
from tests.plan.machines import bow

# The second and third layer are planned alike: all their operands lie alike.
LAYERS = """graph "layers" {
  input %x : f16[64,64]
  weight %w0 : f16[64,64]
  weight %w1 : f16[64,64]
  weight %w2 : f16[64,64]
  matmul %a : %a : f16[64,64] = (%x, %w0) forward 0/0
  matmul %b : %b : f16[64,64] = (%a, %w1) forward 0/0
  matmul %c : %c : f16[64,64] = (%b, %w2) forward 0/0
  output %c
}
"""


def planned(*, outline: bool = True) -> PlannedProgram:
    return plan_graph(parse(LAYERS), bow(), PlanOptions(outline=outline))


def code_bytes(program: PlannedProgram, category: Category) -> int:
    return simulate(program.program, bow()).memory.by_category[category].total


def test_layers_planned_alike_share_their_code() -> None:
    assert planned().program.outlined == {"c": "b"}
    assert planned(outline=False).program.outlined == {}


def test_shared_code_and_vertices_stand_once() -> None:
    shared, own = planned(), planned(outline=False)
    for category in (Category.EXCHANGE_CODE, Category.VERTEX_STATE):
        assert code_bytes(shared, category) < code_bytes(own, category)
    assert simulate(shared.program, bow()).cost == simulate(own.program, bow()).cost


def test_chips_have_their_own_code() -> None:
    assert plan_graph(sharded(), bow(2)).program.outlined == {}


def test_the_text_of_a_program_tells() -> None:
    program = planned().program
    assert parse_program(render_program(program)) == program
