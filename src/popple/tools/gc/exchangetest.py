"""`gc-exchangetest`: tests the exchange between the tiles of each IPU of a device."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from popple.tools.gc.devices import take_bench
from popple.tools.gc.exchange import run_patterns
from popple.tools.gc.tool import Tool, add_device_option, add_json_option, run_tool

_NUM_WORDS = 1024


def add_arguments(parser: ArgumentParser) -> None:
    """Which device."""
    add_device_option(parser)
    add_json_option(parser)


def run(arguments: Namespace) -> int:
    """Permutations, then every tile to every tile."""
    from popple.tools.gc.patterns import make_all_to_all, make_permutations

    with take_bench(arguments.device_id) as bench:
        size = bench.chip.num_tiles
        patterns = (*make_permutations(size, _NUM_WORDS), make_all_to_all(size))
        return run_patterns(bench, patterns, arguments)


TOOL = Tool(
    "gc-exchangetest",
    "test the exchange between tiles",
    "Sends words between all tiles of each IPU, in permutations and from every tile to "
    "every tile, and checks what each tile received. The words are really moved, in "
    "the memory of this computer; the cycles are those of the same exchange on the "
    "modelled IPU. Faults can be simulated with GCDA_OPTIONS.",
    add_arguments,
    run,
    ("gc-exchangetest -d 0", "gc-exchangetest -j"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
