"""Rounds of the update: local work, then communication, as dependences allow."""

from popple.graph import Graph, parse_graph
from popple.plan import plan_graph
from popple.program import (
    Execute,
    GlobalExchange,
    Parallel,
    Step,
    StreamCopy,
    children_of,
    verify,
)
from tests.plan.machines import bow

HEAD = 'graph "update" strategy=sharded num_chips=2 {'
UPDATE = "update chip={chip} stage=0"


def top_steps(*lines: str) -> tuple[Step, ...]:
    graph: Graph = parse_graph("\n".join([HEAD, *lines, "}"]))
    program = plan_graph(graph, bow(2)).program
    verify(program)
    return children_of(program.main)[1:]


def ops_of(step: Step) -> list[str]:
    if isinstance(step, Execute | GlobalExchange | StreamCopy):
        return [step.op]
    return [op for child in children_of(step) for op in ops_of(child)]


def weight_ops(index: int, chip: int) -> list[str]:
    place = UPDATE.format(chip=chip)
    return [
        f"neg %n{index} : %n{index} : f32[64] = (%g{index}) {place}",
        f"sgd_update %u{index} : %v{index} : f32[64] shares %w{index} = "
        f"(%w{index}, %n{index}) {place}",
    ]


DECLARED = [
    f"{role} %{name}{index} : f32[64]"
    for index in range(2)
    for role, name in (("weight", "w"), ("state", "g"))
]


def test_chips_that_do_not_communicate_work_at_the_same_time() -> None:
    (step,) = top_steps(*DECLARED, *weight_ops(0, 0), *weight_ops(1, 1))
    assert isinstance(step, Parallel)
    assert [ops_of(branch) for branch in step.branches] == [["n0", "u0"], ["n1", "u1"]]


def test_work_waits_for_the_copy_it_needs() -> None:
    copy = 'chip_copy %c : %c : f32[64] = (%n0) {"source": 0} ' + UPDATE.format(chip=1)
    update = "sgd_update %u1 : %v1 : f32[64] shares %w1 = (%w1, %c) " + UPDATE.format(
        chip=1
    )
    steps = top_steps(*DECLARED, weight_ops(0, 0)[0], copy, update)
    assert [set(ops_of(step)) for step in steps] == [{"n0"}, {"c"}, {"u1"}]


def test_an_input_of_the_update_is_streamed_before_it() -> None:
    lines = [
        "weight %w : f32[64]",
        "input %g : f32[64]",
        "sgd_update %u : %v : f32[64] shares %w = (%w, %g) " + UPDATE.format(chip=0),
    ]
    stream, work = top_steps(*lines)
    assert isinstance(stream, StreamCopy)
    assert stream.name == "g/stream_in"
    assert set(ops_of(work)) == {"u"}


def test_state_is_loaded_just_before_its_update() -> None:
    lines: list[str] = []
    for index in range(2):
        place, state = UPDATE.format(chip=0), f"s{index}"
        lines += [
            f"remote_load %l{index} : %{state} : f32[64] = (%w{index}) {place}",
            f"momentum_update %u{index} : %v{index} : f32[64] shares %w{index} ; "
            f"%t{index} : f32[64] shares %{state} = "
            f"(%w{index}, %r{index}, %{state}) {place}",
            f"remote_store %o{index} = (%t{index}) {place}",
        ]
    sums = [
        f"all_reduce %r{index} : %r{index} : f32[64] shares %g{index} = (%g{index}) "
        '{"replicas": 2} ' + UPDATE.format(chip=0)
        for index in range(2)
    ]
    order = [op for step in top_steps(*DECLARED, *sums, *lines) for op in ops_of(step)]
    kept = list(dict.fromkeys(order))
    assert kept == ["r0", "r1", "l0", "u0", "o0", "l1", "u1", "o1"]


def reductions(merged_bytes: int) -> int:
    """Exchanges that two sums of 256 bytes take."""
    head = HEAD.replace("{", f"merged_bytes={merged_bytes} {{")
    sums = [
        f"all_reduce %r{index} : %r{index} : f32[64] shares %g{index} = (%g{index}) "
        '{"replicas": 2} ' + UPDATE.format(chip=0)
        for index in range(2)
    ]
    graph = parse_graph("\n".join([head, *DECLARED, *sums, "}"]))
    program = plan_graph(graph, bow(2)).program
    verify(program)
    return sum(isinstance(row.step, GlobalExchange) for row in program.steps)


def test_small_collectives_are_merged_up_to_a_size() -> None:
    # A reduce-scatter and an all-gather for each, or for both together.
    assert [reductions(size) for size in (0, 511, 512)] == [4, 4, 2]
