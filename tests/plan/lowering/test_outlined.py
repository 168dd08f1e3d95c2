"""Outlining: ops planned alike on one chip share code, unless asked not to."""

from popple.plan import PlannedProgram, PlanOptions, plan_graph
from popple.program import (
    Category,
    Exchange,
    Execute,
    Step,
    accesses_of,
    parse_program,
    render_program,
)
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
    costs = [simulate(each.program, bow()).cost for each in (shared, own)]
    assert costs[0].cycles > costs[1].cycles


BIASES = """graph "biases" {
  input %x : f16[64,512]
  weight %b0 : f16[512]
  weight %b1 : f16[512]
  weight %b2 : f16[512]
  add %a : %a : f16[64,512] = (%x, %b0) forward 0/0
  add %b : %b : f16[64,512] = (%a, %b1) forward 0/0
  add %c : %c : f16[64,512] = (%b, %b2) forward 0/0
  output %c
}
"""


def test_ops_share_code_though_their_weights_lie_elsewhere() -> None:
    found = plan_graph(parse(BIASES), bow())
    assert found.mappings["b0"] != found.mappings["b1"]
    assert found.program.outlined == {"b": "a", "c": "a"}
    moves = [row.step for row in found.program.steps]
    names = [step.name for step in moves if isinstance(step, Exchange)]
    assert {"b/move weights", "c/move weights"} < set(names)


def _read_by(step: Step) -> tuple[str, ...]:
    return accesses_of(step)[0]


def test_a_call_copies_the_weights_to_where_the_function_has_them() -> None:
    program = planned().program
    copied = {name for name in program.variables if "copy of input" in name}
    assert copied == {"b/copy of input 1", "c/copy of input 1"}
    steps = [row.step for row in program.steps if "w2" in _read_by(row.step)]
    assert [step.op for step in steps if isinstance(step, Execute)] == [""]


def test_chips_have_their_own_code() -> None:
    assert plan_graph(sharded(), bow(2)).program.outlined == {}


def test_the_text_of_a_program_tells() -> None:
    program = planned().program
    assert parse_program(render_program(program)) == program


REMOTE = """graph "remote" {
  input %x : f16[64,64]
  weight %w : f16[64,64]
  matmul %a : %a : f16[64,64] = (%x, %w) forward 0/0
  remote_store %s0 = (%a) forward 0/0
  remote_load %l0 : %l0 : f16[64,64] = (%a) forward 0/0
  remote_store %s1 = (%l0) forward 0/0
  remote_load %l1 : %l1 : f16[64,64] = (%a) forward 0/0
  output %l1
}
"""


def test_transfers_of_equal_tensors_off_chip_share_code() -> None:
    # Two loads to the same tiles and two stores from them: one code for either.
    shared = plan_graph(parse(REMOTE), bow())
    assert shared.program.outlined == {"s1": "s0", "l1": "l0"}
    own = plan_graph(parse(REMOTE), bow(), PlanOptions(outline=False))
    # The input and the output have code of their own: half and a half are not one.
    code = [code_bytes(each, Category.HOST_CODE) for each in (shared, own)]
    assert code[0] < code[1] < 2 * code[0]
