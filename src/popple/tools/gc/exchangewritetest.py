"""`gc-exchangewritetest`: tests writes over the exchange into the memory of tiles."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from popple.tools.gc.devices import take_bench
from popple.tools.gc.exchange import run_patterns
from popple.tools.gc.tool import Tool, add_device_option, add_json_option, run_tool

_BROADCAST_WORDS = 1024
_GATHER_WORDS = 16
_NUM_SOURCES = 4


def add_arguments(parser: ArgumentParser) -> None:
    """Which device."""
    add_device_option(parser)
    add_json_option(parser)


def run(arguments: Namespace) -> int:
    """One tile writes to all, and all write to one, for tiles all over the IPU."""
    from popple.tools.gc.patterns import make_broadcast, make_gather

    with take_bench(arguments.device_id) as bench:
        size = bench.chip.num_tiles
        tiles = [index * size // _NUM_SOURCES for index in range(_NUM_SOURCES)]
        out = [make_broadcast(size, tile, _BROADCAST_WORDS) for tile in tiles]
        back = [make_gather(size, tile, _GATHER_WORDS) for tile in tiles]
        return run_patterns(bench, (*out, *back), arguments)


TOOL = Tool(
    "gc-exchangewritetest",
    "test writes over the exchange",
    "Writes words from one tile into the memory of all tiles, and from all tiles into "
    "different places of one tile's memory, and checks every place. The words are "
    "really moved, in the memory of this computer; the cycles are modelled. Faults can "
    "be simulated with GCDA_OPTIONS.",
    add_arguments,
    run,
    ("gc-exchangewritetest -d 0",),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
