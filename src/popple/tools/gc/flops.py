"""`gc-flops`: floating-point operations per second of an IPU's multiply units."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace

from popple._version import __version__
from popple.device.attributes import render_clock
from popple.errors import UsageError
from popple.target import Chip, System
from popple.tools.gc.devices import take_bench
from popple.tools.gc.tool import (
    PASSED,
    Tool,
    add_device_option,
    add_json_option,
    print_json,
    run_tool,
)

# Enough for every tile to have a block that keeps its units busy for long.
_SIZE = 5888
_DTYPES: Mapping[str, str] = {"FP16": "f16", "FP32": "f32", "FP8": "f8"}
_LOW_CLOCK_SHARE = 0.5
# Half a minute on a Bow, as the documented output shows.
_NUM_ROUNDS = 130_000


@dataclass(frozen=True)
class Flops:
    """Operations per second of one IPU, and the seconds they were counted for."""

    rate: float
    seconds: float


def add_arguments(parser: ArgumentParser) -> None:
    """The documented options; `-v` is the version, as there."""
    add_device_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "-p",
        "--fp",
        choices=tuple(_DTYPES),
        default="FP16",
        type=str.upper,
        help="precision [FP16]",
    )
    parser.add_argument(
        "-v",
        action="version",
        version=f"gc-flops (popple) {__version__}",
        help="as --version",
    )
    parser.add_argument(
        "-l",
        "--low-clock-rate",
        action="store_true",
        help="model half the clock, as on an IPU that is too hot",
    )


def run(arguments: Namespace) -> int:
    """Simulate the units at work, and print their rate."""
    with take_bench(arguments.device_id) as bench:
        system = bench.system
        if arguments.low_clock_rate:
            clock = int(system.chip.clock_hz * _LOW_CLOCK_SHARE)
            system = replace(system, chip=replace(system.chip, clock_hz=clock))
        found = measure_units(system, arguments.fp)
    clock_text = render_clock(system.chip.clock_hz)
    if arguments.json_output:
        product = measure_product(system, arguments.fp)
        print_json(
            {
                "precision": arguments.fp,
                "teraflops": found.rate / 1e12,
                "product_teraflops": product.rate / 1e12,
                "duration_seconds": found.seconds,
                "clock": clock_text,
            }
        )
        return PASSED
    rate = f"{found.rate / 1e12:.4f} teraFLOPS"
    took = f"{found.seconds:.6g} seconds"
    print(f"Flops per IPU ({arguments.fp}): {rate} (took: {took})")
    print(f"IPU clock speed: {clock_text.removesuffix('MHz')} MHz")
    return PASSED


def measure_units(system: System, precision: str) -> Flops:
    """The rate of a program whose workers do nothing but multiply and accumulate.

    A worker repeats one instruction on its registers as often as the hardware's loop
    allows, and the tiles meet before the next round.
    """
    from popple.program import (
        Codelet,
        ComputeSet,
        Execute,
        Program,
        Repeat,
        Sequence,
        Sync,
        SyncKind,
        Thread,
        TileVector,
        VertexGroup,
    )
    from popple.sim import simulate
    from popple.target import Target

    chip = system.chip
    each = flops_per_cycle(chip, precision) * chip.rpt_count_max
    count, cycles, flops = (
        TileVector.constant(chip.num_tiles, value)
        for value in (chip.num_workers, chip.rpt_count_max, each)
    )
    codelet = Codelet("MultiplyAccumulate", Thread.WORKER)
    compute_set = ComputeSet("flops", (VertexGroup(codelet, count, cycles, flops),))
    steps = Sequence((Execute(compute_set), Sync(SyncKind.INTERNAL)))
    body = Repeat(_NUM_ROUNDS, steps)
    program = Program("flops", 1, chip.num_tiles, {}, body)
    found = simulate(program, Target(system))
    return Flops(found.cost.flops / found.seconds, found.seconds)


def measure_product(system: System, precision: str) -> Flops:
    """The rate of a product of two square matrices, data on the IPU already."""
    from popple.graph import parse_graph
    from popple.options import ModelOptions
    from popple.pipeline import model_graph
    from popple.plan import PlanOptions
    from popple.target import Target

    # Sums in FP16 keep all units busy.
    partials = "f16" if precision == "FP16" else "f32"
    options = ModelOptions(plan=PlanOptions(partials=partials))
    graph = parse_graph(_TEXT.format(dtype=_DTYPES[precision], size=_SIZE))
    cost = model_graph(graph, Target(system), options).simulation.cost
    # The result's way to the host is no part of the product.
    cycles = cost.compute_cycles + cost.exchange_cycles + cost.sync_cycles
    seconds = cycles / system.chip.clock_hz
    return Flops(cost.flops / seconds, seconds)


def flops_per_cycle(chip: Chip, precision: str) -> int:
    """Two operations for each input that a tile's units take in each cycle."""
    units, width = {
        "FP16": (chip.fp16_in_fp16_out_conv_units, chip.fp16_conv_unit_load_elements),
        # An FP32 step takes two cycles, and its units have one input each.
        "FP32": (chip.fp32_in_fp32_out_conv_units, 1),
        "FP8": (chip.fp8_in_fp16_out_conv_units, chip.fp8_conv_unit_load_elements),
    }[precision]
    if not units:
        raise UsageError(
            f"{chip.name} has no {precision} units.", remedy="Choose FP16 or FP32."
        )
    return 2 * units * width


_TEXT = """graph "flops" {{
  weight %a : {dtype}[{size},{size}]
  weight %b : {dtype}[{size},{size}]
  matmul %c : %c : {dtype}[{size},{size}] = (%a, %b) forward chip=0 stage=0
  output %c
}}
"""

TOOL = Tool(
    "gc-flops",
    "show the floating-point rate of an IPU",
    "Simulates a program in which all workers of an IPU multiply and accumulate "
    "without a pause, and prints operations per second and the modelled time. With -j "
    "also the rate of a large matrix product, planned for one IPU, with its exchange.",
    add_arguments,
    run,
    ("gc-flops", "gc-flops -p FP32 -j"),
)


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
