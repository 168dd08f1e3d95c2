"""`popple targets`: lists the machines Popple knows, or every constant of one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from popple.text_table import render_table
from popple.tools.command import Command
from popple.units import render_bytes, render_count

if TYPE_CHECKING:
    from popple.target import Constant, System


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="NAME|FILE",
        nargs="?",
        help="show every constant of this system, with unit and source",
    )


def run(arguments: Namespace) -> int:
    """Print the list, or one system in full."""
    print(render_list() if arguments.target is None else render_one(arguments.target))
    return 0


def render_list() -> str:
    """The built-in systems, one per line."""
    from popple.target import list_systems

    header = ("target", "chips", "chip", "tiles", "memory", "clock")
    numbers = ("chips", "tiles", "memory", "clock")
    return render_table(header, map(summarise, list_systems()), numbers)


def summarise(system: System) -> tuple[str, ...]:
    """One line of the list; tiles and memory are those of all chips together."""
    chip = system.chip
    num_tiles = system.num_chips * chip.num_tiles
    return (
        system.name,
        render_count(system.num_chips),
        chip.name,
        render_count(num_tiles),
        render_bytes(num_tiles * chip.tile_memory_bytes),
        f"{chip.clock_hz / 1e6:,.0f} MHz",
    )


def render_one(name_or_path: str) -> str:
    """Every constant of one system and its chip, one table for each."""
    from popple.target import describe

    parts = groupby(describe(name_or_path), key=lambda constant: constant.part)
    return "\n\n".join(f"{part}\n\n{render_part(rows)}" for part, rows in parts)


def render_part(constants: Iterable[Constant]) -> str:
    """The constants of a system or of a chip."""
    header = ("constant", "value", "unit", "source")
    rows = ((c.name, render_value(c.value), c.unit, c.source) for c in constants)
    return render_table(header, rows, ("value",))


def render_value(value: float | str) -> str:
    """Numbers with thousands separators, and decimals only where there are some."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


COMMAND = Command("targets", "List the machines to model.", add_arguments, run)
