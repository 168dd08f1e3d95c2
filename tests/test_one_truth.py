"""One truth in a report: sums over its parts agree, whatever the structure of a run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popple.graph import Graph, Strategy, parse_graph
from popple.options import ModelOptions, UpdateOptions
from popple.pipeline import Modelled, model_graph
from popple.plan import IoOptions, Overlap, PlanOptions
from popple.record import record
from popple.report import ReportContents, add_times
from popple.target import Target, load_system

# Three stages, each a scale by a weight; `forward 1/2` is chip=1 stage=2.
STAGES = """graph "net" {
  input %x : f16[64,96]
  weight %w0 : f16[64,96]
  weight %w1 : f16[64,96]
  weight %w2 : f16[64,96]
  mul %a : %a : f16[64,96] = (%x, %w0) forward 0/0
  exp %e : %e : f16[64,96] = (%a) forward 0/0
  mul %b : %b : f16[64,96] = (%e, %w1) forward 1/1
  mul %c : %c : f16[64,96] = (%b, %w2) forward 2/2
  mul %gw2 : %gw2 : f16[64,96] = (%c, %b) backward 2/2
  mul %gb : %gb : f16[64,96] = (%c, %w2) backward 2/2
  mul %gw1 : %gw1 : f16[64,96] = (%gb, %e) backward 1/1
  mul %ga : %ga : f16[64,96] = (%gb, %w1) backward 1/1
  mul %ge : %ge : f16[64,96] = (%ga, %e) backward 0/0
  mul %gw0 : %gw0 : f16[64,96] = (%ge, %x) backward 0/0
  output %c
}
"""
GRADIENTS = {"w0": "gw0", "w1": "gw1", "w2": "gw2"}


def captured(num_chips: int) -> Graph:
    """The graph as a front end gives it, on one chip or on three."""
    text = STAGES.replace('"net"', f'"net" num_chips={num_chips}')
    text = text if num_chips == 3 else re.sub(r" \d/\d\n", " 0/0\n", text)
    return parse_graph(re.sub(r" (\d)/(\d)\n", r" chip=\1 stage=\2\n", text))


def modelled(num_chips: int, options: ModelOptions) -> tuple[Modelled, ReportContents]:
    system = load_system("bow-pod16")
    target = Target(system, num_chips, options.replicas)
    model = model_graph(captured(num_chips), target, options)
    contents = record(
        model.graph,
        model.planned,
        model.simulation,
        target,
        framework="",
        framework_version="",
        seconds={},
    )
    return model, contents


def make_options(
    strategy: Strategy,
    accumulation: int,
    iterations: int,
    replicas: int,
    recompute: bool,
    is_merged: bool,
    has_io_tiles: bool,
) -> ModelOptions:
    overlaps = {
        Strategy.SINGLE: Overlap.ITERATIONS,
        Strategy.SHARDED: Overlap.NONE,
        Strategy.PIPELINED: Overlap.MICRO_BATCHES,
    }
    io = IoOptions(32, overlaps[strategy]) if has_io_tiles else IoOptions()
    return ModelOptions(
        strategy=strategy,
        accumulation=accumulation,
        device_iterations=iterations,
        replicas=replicas,
        recompute=recompute,
        interleaved=is_merged and strategy is Strategy.PIPELINED,
        merged_bytes=1 << 30 if is_merged else 0,
        update=UpdateOptions("adam_update", 2, GRADIENTS),
        plan=PlanOptions(io=io),
    )


OPTIONS = st.builds(
    make_options,
    st.sampled_from([Strategy.SINGLE, Strategy.SHARDED, Strategy.PIPELINED]),
    accumulation=st.integers(1, 9),
    iterations=st.integers(1, 3),
    replicas=st.sampled_from([1, 2]),
    recompute=st.booleans(),
    is_merged=st.booleans(),
    has_io_tiles=st.booleans(),
)


def num_chips_of(options: ModelOptions) -> int:
    return 1 if options.strategy is Strategy.SINGLE else 3


@settings(max_examples=30, deadline=None)
@given(OPTIONS)
def test_a_report_does_not_contradict_itself(options: ModelOptions) -> None:
    model, contents = modelled(num_chips_of(options), options)
    check_classes(model, contents)
    check_steps_and_timeline(options, model, contents)
    check_phases(options, contents)
    if options.strategy is Strategy.PIPELINED:
        count = options.accumulation * options.device_iterations
        check_micro_batches(contents, count)


def check_classes(model: Modelled, contents: ReportContents) -> None:
    """Every cycle of a chip is in exactly one class, and an operation took it."""
    for time in contents.chip_times:
        assert sum(time.cycles_by_class.values()) == model.simulation.cost.cycles
        assert min(time.cycles_by_class.values()) >= 0
    whole = add_times(contents.chip_times)
    sums = dict.fromkeys(whole, 0)
    for operation in contents.operations:
        classes = operation.cycles_by_class
        for name, cycles in classes.items():
            sums[name] += cycles
        if any(classes.values()):
            assert classes[operation.bound_by] == max(classes.values())
    assert sums | {"bubbles": whole["bubbles"]} == whole


def check_steps_and_timeline(
    options: ModelOptions, model: Modelled, contents: ReportContents
) -> None:
    """Steps and slices of a chip cover the time in which it is not idle."""
    for time in contents.chip_times:
        chip, busy = time.chip, model.simulation.busy_cycles_by_chip[time.chip]
        slices = [s for s in contents.timeline if s.chip == chip]
        seen = covered((s.start_cycles, s.end_cycles) for s in slices)
        # Where a chip waits for others while a stream of its own runs beside, the wait
        # counts as a bubble: streams are only compared with all work of their branch.
        is_exact = len(contents.chip_times) == 1 or not options.plan.io.num_tiles
        assert seen == busy if is_exact else seen >= busy
        steps = [on for s in contents.steps for on in s.chips if on.chip == chip]
        # What runs beside a longer step is in both, and takes no time of its own.
        beside = sum(on.cycles for on in steps) - busy
        assert beside == sum(s.end_cycles - s.start_cycles for s in slices) - busy
        assert beside >= 0
        assert model.simulation.cost.cycles - time.bubble_cycles == busy


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """How many cycles are in at least one of the spans."""
    total = reached = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def check_phases(options: ModelOptions, contents: ReportContents) -> None:
    """The timeline has the phases of the operations, on all chips together."""
    in_timeline, in_operations = Counter[str](), Counter[str]()
    for each in contents.timeline:
        in_timeline[each.phase] += each.end_cycles - each.start_cycles
    for operation in contents.operations:
        in_operations[operation.phase] += sum(operation.cycles_by_class.values())
    # With streams beside compute slices lie above each other: see above.
    if options.plan.io.num_tiles == 0:
        assert in_timeline == in_operations


def check_micro_batches(contents: ReportContents, count: int) -> None:
    """Each stage has each micro-batch once in each phase."""
    numbers = defaultdict[tuple[int, str], list[int]](list)
    for each in contents.timeline:
        if each.stage is not None and each.micro_batch is not None:
            numbers[each.stage, each.phase].append(each.micro_batch)
    assert {stage for stage, _ in numbers} == set(range(5))
    assert {phase for _, phase in numbers} == {"forward", "backward"}
    for found in numbers.values():
        assert sorted(found) == list(range(count))


def test_host_streams_hold_no_copies_between_ipus() -> None:
    options = make_options(Strategy.PIPELINED, 8, 1, 2, True, True, False)
    _, contents = modelled(3, options)
    rows = {each.name: each for each in contents.operations}
    assert rows["host streams"].bound_by == "host"
    assert rows["host streams"].link_cycles == 0
    assert rows["copies between IPUs"].bound_by in ("links", "sync")


def test_merged_collectives_have_a_row_of_their_own() -> None:
    options = make_options(Strategy.SINGLE, 2, 1, 2, False, True, False)
    _, contents = modelled(1, options)
    rows = {each.name: each for each in contents.operations}
    assert rows["merged collectives"].phase == "update"
    assert rows["merged collectives"].link_cycles > 0


@pytest.mark.parametrize("iterations", [1, 3])
def test_traffic_beside_compute_takes_no_time_of_its_own(iterations: int) -> None:
    options = make_options(Strategy.SINGLE, 4, iterations, 1, False, False, True)
    model, contents = modelled(1, options)
    (time,) = contents.chip_times
    assert sum(time.cycles_by_class.values()) == model.simulation.cost.cycles
    forward = [s.micro_batch for s in contents.timeline if s.label == "a"]
    assert forward == list(range(4 * iterations))


def test_recomputed_work_is_named_in_words() -> None:
    options = make_options(Strategy.PIPELINED, 8, 1, 1, True, False, False)
    _, contents = modelled(3, options)
    remarks = {each.name: each.remark for each in contents.operations}
    assert remarks["e.again"].startswith("recomputed")
    assert any(remark.startswith("keeps an") for remark in remarks.values())


def test_copies_take_the_time_of_all_their_ipus() -> None:
    _, contents = modelled(
        3, make_options(Strategy.PIPELINED, 8, 1, 1, False, False, False)
    )
    (copies,) = [o for o in contents.operations if o.name == "copies between IPUs"]
    # In every cycle of the pipeline each IPU sends to a neighbour or hears from one.
    assert sum(copies.cycles_by_class.values()) > 2 * copies.cycles


def test_what_runs_beside_longer_steps_takes_no_time() -> None:
    _, contents = modelled(
        1, make_options(Strategy.SINGLE, 4, 3, 1, False, False, True)
    )
    beside = [o for o in contents.operations if o.remark.startswith("runs beside")]
    for operation in beside:
        assert not any(operation.cycles_by_class.values())
        assert operation.cycles > 0
    sums = [sum(o.cycles_by_class.values()) for o in contents.operations]
    assert sum(sums) < sum(o.cycles for o in contents.operations)
