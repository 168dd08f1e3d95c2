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
from popple.sim.liveness import find_liveness
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


Copied = list[tuple[str, tuple[str, ...], tuple[str, ...]]]


def copied(program: PlannedProgram) -> Copied:
    """Copies around calls: the name of the step, what it reads and what it writes."""
    steps = [row.step for row in program.program.steps if isinstance(row.step, Execute)]
    named = [(step.compute_set.name, step.reads, step.writes) for step in steps]
    return [each for each in named if "/copy " in each[0]]


def test_a_call_copies_its_arguments_and_its_results() -> None:
    # Both layers are calls of one function, the one that is repeated, too.
    assert copied(planned()) == [
        ("b/copy arguments", ("w1", "a"), ("b/copy of input 1", "b/own a")),
        ("b/copy results", ("b/own b",), ("b",)),
        ("c/copy arguments", ("w2", "b"), ("c/copy of input 1", "c/own b")),
        ("c/copy results", ("c/own c",), ("c",)),
    ]
    assert copied(planned(outline=False)) == []


def test_ops_inside_read_and_write_what_the_function_has() -> None:
    steps = [row.step for row in planned().program.steps]
    found = [accesses_of(step) for step in steps if getattr(step, "op", "") == "c"]
    touched = {name for access in found for names in access for name in names}
    assert {"c/own b", "c/own c", "c/copy of input 1"} <= touched
    assert not {"b", "c", "w2"} & touched


def test_cheap_ops_alone_are_no_function() -> None:
    # Their code is shared, and their weights are brought to where that has them.
    found = plan_graph(parse(BIASES), bow())
    assert not any("own" in name for name in found.program.variables)


SUMS = """graph "sums" {
  input %x : f16[64,64]
  weight %w0 : f16[64,64]
  weight %w1 : f16[64,64]
  weight %w2 : f16[64,64]
  state %sum : f16[64,64]
  matmul %a : %a : f16[64,64] = (%x, %w0) forward 0/0
  matmul %b : %b : f16[64,64] = (%a, %w1) backward 0/0
  accumulate %s0 : %s0 : f16[64,64] shares %sum = (%sum, %b) backward 0/0
  matmul %c : %c : f16[64,64] = (%b, %w2) backward 0/0
  accumulate %s1 : %s1 : f16[64,64] shares %sum = (%sum, %c) backward 0/0
  output %c
}
"""


def test_what_a_function_writes_in_place_is_not_copied() -> None:
    found = plan_graph(parse(SUMS), bow())
    assert found.program.outlined == {"c": "b", "s1": "s0"}
    own = [name for name in found.program.variables if "/own " in name]
    assert own == ["b/own a", "b/own b", "c/own b", "c/own c"]


def test_a_function_takes_memory_while_it_runs() -> None:
    program = planned().program
    live = find_liveness(program, program.steps)
    ids = {
        row.step.compute_set.name: row.id
        for row in program.steps
        if isinstance(row.step, Execute)
    }
    # Results are copied at the end of a call, the argument was read before.
    last = ids["b/copy results"]
    assert live.is_live("b/own b", last)
    assert not live.is_live("b/own b", last + 1)
    assert not live.is_live("b/own a", last)
