"""A report made by hand: two chips of four tiles that run four steps once.

Cycles by tile, with the time each step begins:

    step            at   chip 0           chip 1
    OnTileExecute    0   100 100 100 60   80 80 80 80
    DoExchange     100   10 on every tile
    GlobalExchange 110   20 on every tile
    StreamCopy     130   30 0 0 0         -
    end            160
"""

from __future__ import annotations

from pathlib import Path

import pytest

from popple import report as rp

ZERO: rp.Runs = ((8, 0),)
GENUINE = Path(__file__).parents[2] / ".." / "shared" / "facts" / "profiles" / "pi.pop"


@pytest.fixture(scope="session")
def genuine_path() -> Path:
    """A file written by the vendor's own software, where one is at hand."""
    if not GENUINE.is_file():
        pytest.skip("no genuine report beside the project")
    return GENUINE


@pytest.fixture(scope="session")
def contents() -> rp.ReportContents:
    """The report described above, with something in every part of it."""
    steps = make_steps()
    return rp.ReportContents(
        target=make_target(),
        graph_info=rp.GraphInfo(1, 16, 4, 12),
        memory_by_tile=make_memory(),
        producer_version=rp.ProducerVersion("0.1", "abc", 0, 1, 0),
        compilation_id="compiled-once",
        created="2026-01-02 03:04:05",
        optimizations=(rp.Optimization("merged constants", 2.0),),
        compile_events=(rp.CompileEvent("plan", 5, 7),),
        compilation_parameters=(rp.Parameter("opt.level", "2"),),
        target_parameters=(rp.Parameter("GatewayMode", "1", is_default=True),),
        execution_parameters=(rp.Parameter("debug.trace", "false", True, 0),),
        vertex_types=make_vertex_types(),
        compute_sets=make_compute_sets(),
        programs=make_programs(),
        control_programs=(rp.EntryProgram(0, 0),),
        function_programs=(rp.EntryProgram(0, 8),),
        exchange_regions=(rp.ExchangeRegion(0, 3, "[0,4)"),),
        memory_by_category=make_categories(),
        liveness_tiles=(0, 7),
        liveness_steps=make_liveness_steps(),
        liveness_deltas=make_deltas(),
        liveness_classes=tuple(CLASSES.values()),
        variables=make_variables(),
        lowered_variables=make_lowered_variables(),
        interferences=(rp.Interference(2, (3, 1)),),
        allocation_orders=(rp.AllocationOrder(0, (1, 0)),),
        steps=steps,
        runs=(rp.RunInfo(0, "main", 1_000, 4, 4, 2, end_cycles_by_chip=(160, 130)),),
        cycle_totals=(rp.total_steps(steps, 160, 8),),
        program_trace=(0, 1, 2, 3, 4),
        markers=(rp.Marker(0, 0, 100, ZERO, ((8, 5),)),),
        blocks=(rp.Block(1, 10, 20, None, 0),),
        operations=make_operations(),
        timeline=make_timeline(),
        memory_roles=(
            rp.RoleBytes(0, 0, "weights", 200),
            rp.RoleBytes(0, 0, "stash", 120),
            rp.RoleBytes(1, 7, "weights", 640),
        ),
        case_text="{}",
        chip_times=(
            rp.ChipTime(0, 85, 10, 20, 5, 20, 20),
            rp.ChipTime(1, 60, 10, 20, 5, 20, 45),
        ),
        info=make_info(),
        generic_ops={"aten.foo": 1, "aten.bar": 3},
        graph_text="graph { }",
        debug_contexts=(rp.DebugContext(4, "dense", None, "net.dense", "net.py:12"),),
        framework=rp.Framework("torch", "2.13", {"precision": "fp16"}),
    )


def make_target() -> rp.TargetInfo:
    return rp.TargetInfo(
        num_chips=2,
        tiles_per_chip=4,
        bytes_per_tile=1000,
        clock_hz=1_000_000_000,
        architecture="ipu2",
        sync_delay_cycles_by_tile=((2, 0), (6, 1)),
    )


def make_memory() -> rp.MemoryByTile:
    total: rp.Runs = ((4, 300), (4, 500))
    with_gaps: rp.Runs = ((4, 320), (3, 520), (1, 640))
    return rp.MemoryByTile(
        total_bytes=total,
        total_with_gaps_bytes=with_gaps,
        always_live_bytes=((8, 200),),
        transient_peak_bytes=((4, 100), (4, 300)),
        interleaved_bytes=ZERO,
        interleaved_with_gaps_bytes=ZERO,
        non_interleaved_bytes=total,
        non_interleaved_with_gaps_bytes=with_gaps,
        overflowed_bytes=ZERO,
        overflowed_with_gaps_bytes=ZERO,
    )


def make_categories() -> tuple[rp.MemoryByCategory, ...]:
    data: rp.Runs = ((4, 200), (4, 350))
    return (
        rp.MemoryByCategory("variable", ZERO, ZERO, data, ((8, 90),), ZERO, ZERO),
        rp.MemoryByCategory("vertexCode", ZERO, ZERO, ((8, 80),), ZERO, ZERO, ZERO),
        rp.MemoryByCategory("stack", ZERO, ZERO, ZERO, ZERO, ZERO, ZERO),
    )


def make_vertex_types() -> tuple[rp.VertexType, ...]:
    memory = rp.VertexMemory(((8, 4),), ZERO, ZERO, ((8, 2),), ZERO)
    return (
        rp.VertexType(0, "poplin::Dot", 12, "asm", ((8, 80),), memory),
        rp.VertexType(1, "Fill", 4),
    )


def make_compute_sets() -> tuple[rp.ComputeSet, ...]:
    instances = (
        rp.VertexInstances(1, ((8, 1),)),
        rp.VertexInstances(0, ((2, 2), (6, 0))),
    )
    return (
        rp.ComputeSet(
            id=0,
            name="dense/forward",
            instances=instances,
            num_edges=16,
            debug_id=4,
            cycles_by_tile=(((3, 100), (1, 60)), ((4, 80),)),
            estimated_cycles_by_tile=(((4, 90),), ((4, 90),)),
            estimated_flops_by_tile=((8, 1000),),
            variable_ids=(0, 1, 5),
            memory=rp.VertexMemory(((8, 4),), ZERO, ZERO, ZERO, ZERO),
        ),
    )


def make_programs() -> tuple[rp.ProgramNode, ...]:
    moved = rp.Traffic(((4, 8), (4, 0)), ((8, 4),), (((4, 10),), ((4, 10),)))
    streams = (rp.HostExchange("images"),)
    copy = rp.StreamCopyPayload(moved, streams, (rp.HostExchange("loss", "", True),))
    exchange = rp.ExchangePayload(moved, ((8, 16),), rp.Endpoints("a", "b", 0, 0))
    call, repeat = rp.CallPayload(0), rp.RepeatPayload(3)
    return (
        rp.ProgramNode(0, "Sequence", children=(1, 2, 3, 4, 5, 6)),
        rp.ProgramNode(1, "OnTileExecute", payload=rp.ExecutePayload(0), debug_id=4),
        rp.ProgramNode(2, "DoExchange", "gather", payload=exchange),
        rp.ProgramNode(
            3, "GlobalExchange", payload=rp.ChipExchangePayload(moved, "Ext")
        ),
        rp.ProgramNode(4, "StreamCopyMid", payload=copy),
        rp.ProgramNode(5, "Repeat", children=(7,), payload=repeat),
        rp.ProgramNode(6, "Call", payload=call, control_code_bytes_by_tile=((8, 4),)),
        rp.ProgramNode(7, "Sync", payload=rp.SyncPayload("Internal")),
        rp.ProgramNode(8, "Sans", payload=rp.TilesPayload((1, 2, 3))),
        rp.ProgramNode(
            9, "CodeCopy", payload=rp.CodeCopyPayload((((4, 5),), ((4, 5),)))
        ),
        rp.ProgramNode(10, "Unheard", "of"),
    )


def make_steps() -> tuple[rp.Step, ...]:
    both = (0, 1)
    uneven: rp.Runs = ((3, 100), (1, 60))
    compute = (rp.lockstep(0, 0, uneven), rp.lockstep(1, 0, ((4, 80),)))
    return (
        rp.Step("OnTileExecute", 1, chips=compute),
        rp.Step("DoExchange", 2, chips=tuple(all_tiles(c, 100, 10) for c in both)),
        rp.Step("GlobalExchange", 3, chips=tuple(all_tiles(c, 110, 20) for c in both)),
        rp.Step("StreamCopy", 4, chips=(rp.lockstep(0, 130, ((1, 30), (3, 0))),)),
    )


def all_tiles(chip: int, base_cycles: int, cycles: int) -> rp.StepOnChip:
    return rp.lockstep(chip, base_cycles, ((4, cycles),))


CLASSES = rp.number_classes([None, ((1, 3),), ((2, 5),), ((4, 5),)])


def make_variables() -> tuple[rp.Variable, ...]:
    always, first = CLASSES[None].id, CLASSES[((1, 3),)].id
    second, third = CLASSES[((2, 5),)].id, CLASSES[((4, 5),)].id
    return (
        rp.Variable(0, "weights0", 800, always, 0, ((4, 200), (4, 0)), (4,)),
        rp.Variable(1, "weights1", 900, always, 1),
        rp.Variable(2, "act0", 400, first, 0),
        rp.Variable(3, "act1", 700, second, 1),
        rp.Variable(4, "scratch", 100, third, 1),
    )


def make_lowered_variables() -> tuple[rp.LoweredVariable, ...]:
    return (
        rp.LoweredVariable(0, 0, "weights0#0", 200, 8, 0, 0, 1, 5, 0, (1,)),
        rp.LoweredVariable(1, 0, "weights0#0", 4, 4, 200, 0, 1, 5),
    )


def make_liveness_steps() -> tuple[rp.LivenessStep, ...]:
    parents = {0: None, 7: 5}
    return tuple(
        rp.LivenessStep(
            index, index, parents.get(index, 0), "start" if not index else None
        )
        for index in range(8)
    )


def make_deltas() -> tuple[rp.LivenessDelta, ...]:
    changes = ((0, 1, 400), (0, 3, -400), (1, 2, 700), (1, 4, 100), (1, 5, -800))
    return tuple(rp.LivenessDelta(*change) for change in changes)


def make_operations() -> tuple[rp.Operation, ...]:
    return (
        rp.Operation(0, "dense/add", "add", 8, "elementwise", "forward", 0),
        rp.Operation(
            id=1,
            name="dense/matmul",
            kind="matmul",
            cycles=120,
            family="matmul",
            phase="forward",
            chip=1,
            stage=0,
            module="dense",
            source_line="net.py:12",
            compute_cycles=100,
            exchange_cycles=15,
            sync_cycles=5,
            flops=16_000,
            num_executions=2,
            bound_by="compute",
            rule="matmul",
            memory_bytes=900,
            plan_json="{}",
            framework_op="aten.mm",
        ),
    )


def make_timeline() -> tuple[rp.TimelineSlice, ...]:
    return (
        rp.TimelineSlice(0, 0, 100, "dense", "forward", 0, 0),
        rp.TimelineSlice(1, 110, 130, "copy", "forward", 1, 0),
    )


def make_info() -> dict[str, rp.InfoValue]:
    return {
        "generator": "popple",
        "popple_version": "0.1",
        "modelled": 1,
        "title": "by hand",
        "target": "tiny",
        "samples_per_run": 32,
        "replicas": 1,
    }
