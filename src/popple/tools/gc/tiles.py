"""Tiles as gc-info shows them: state, registers and memory of a device nobody uses.

In: a device that is ours and what is asked of it. Out: lines of text. No program is
loaded on a virtual device that nobody runs: every register and byte is zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from popple.errors import UsageError, suggest
from popple.tools.gc.devices import Bench
from popple.units import ceil_div

_COLUMNS = 16
_TILES_PER_CELL = 4
_BYTES_PER_LINE = 16
_IDLE = ":"
_LEGEND = "(virtual device, no program is loaded: every tile is idle)"
_EMPTY = "(virtual device, no program is loaded: registers and memory are zero)"
_SUPERVISOR = "SU"


def draw_overview(bench: Bench) -> Iterator[str]:
    """A map of the tiles of each chip: columns as on the chip, four tiles to a cell."""
    num_cells = ceil_div(bench.chip.num_tiles, _TILES_PER_CELL)
    yield " " * 3 + " ".join(f"{column:>4}" for column in range(_COLUMNS))
    for chip_id in bench.chip_ids:
        if len(bench.chip_ids) > 1:
            yield f"IPU {chip_id}"
        for row in range(ceil_div(num_cells, _COLUMNS)):
            width = min(_COLUMNS, num_cells - row * _COLUMNS)
            yield f"{row:>3} " + " ".join([_IDLE * _TILES_PER_CELL] * width)
    yield _LEGEND


def list_registers(
    bench: Bench, tile: str, context: str | None, register: str | None
) -> Iterator[str]:
    """The registers of a tile or of all, one line each."""
    tiles = range(bench.chip.num_tiles)
    if tile != "-":
        number = _read_number(tile, "tile", bench.chip.num_tiles)
        tiles = range(number, number + 1)
    contexts = _choose_contexts(context, bench.chip.num_workers)
    names = {name: _choose_registers(name, register) for name in contexts}
    yield _EMPTY
    for number in tiles:
        for name, registers in names.items():
            for each in registers:
                yield f"tile {number} {name} {each}: 0x00000000"


def dump_memory(bench: Bench, tile: str, address: str, size: str) -> Iterator[str]:
    """Words of a tile's memory, sixteen bytes to a line."""
    chip = bench.chip
    _read_number(tile, "tile", chip.num_tiles)
    end = chip.tile_memory_base_address + chip.tile_memory_bytes
    first = _read_number(address, "address", end, chip.tile_memory_base_address)
    num_bytes = _read_number(size, "number of bytes", end - first + 1)
    yield _EMPTY
    for start in range(first, first + num_bytes, _BYTES_PER_LINE):
        words = ceil_div(min(_BYTES_PER_LINE, first + num_bytes - start), 4)
        yield f"0x{start:08x}: " + " ".join(["00000000"] * words)


def refuse_registers(option: str) -> UsageError:
    """What there is no honest answer to."""
    return UsageError(
        f"{option} shows registers of the chip's hardware, which virtual devices "
        "do not have.",
        remedy="Use --device-info, --tile-overview or --tile-status.",
    )


def _choose_contexts(context: str | None, num_workers: int) -> list[str]:
    known = [_SUPERVISOR, *(f"W{n}" for n in range(num_workers))]
    if context is None:
        return known
    # `n` alone is short for `Wn`.
    wanted = f"W{context}" if context.isdigit() else context.upper()
    if wanted not in known:
        raise UsageError(f"No context {context!r}.", remedy=suggest(context, known))
    return [wanted]


def _choose_registers(context: str, register: str | None) -> list[str]:
    """The program counter and the register files; only workers have the second."""
    known = ["PC", *(f"m{n}" for n in range(16))]
    if context != _SUPERVISOR:
        known += [f"a{n}" for n in range(16)]
    if register is None:
        return known
    found = [name for name in known if name.lower() == register.lower()]
    if not found:
        what = f"No register {register!r} in context {context}."
        raise UsageError(what, remedy=suggest(register, known))
    return found


def _read_number(text: str, what: str, limit: int, least: int = 0) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if not least <= number < limit:
        raise UsageError(
            f"{text!r} is no {what} of this device.",
            remedy=f"Use a number from {least} to {limit - 1}.",
        )
    return number
