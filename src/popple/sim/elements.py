"""Gaps in tile memory where vertices need operands in different memory elements.

A tile reads and writes several words in one cycle if they lie in different memory
elements. The vertices of the convolution units depend on that: the partials they write
lie in interleaved memory, in elements that hold none of their operands. Memory is
filled in this order: always-live data, other live variables, the operands of the
vertex; then interleaved variables, the partials among them. Gaps between are filled
with other live variables that are smaller than an element; what is left is lost.
Copies on a tile read and write a word in one cycle, too (Poplar's vertices
`StridedCopy64BitMultiAccess` in published profiles): what they bring together lies in
elements behind those that they read, which lie behind the elements of code.
Addresses are not assigned (docs/decisions/0011).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from popple.program import (
    Exchange,
    Execute,
    Numbering,
    Program,
    TileVector,
    Variable,
    add_all,
    combine,
    maximum_of,
)
from popple.sim.liveness import Liveness
from popple.sim.sweep import Counts, Sweep
from popple.target import Chip
from popple.units import ceil_div

TAIL_BYTES = 24
"""Bytes behind interleaved data, which loads that run ahead may touch: in all published
tile memories of products and convolutions that agree with ours to the byte."""


def find_reach(
    transient: Mapping[str, Variable],
    steps: Numbering,
    liveness: Liveness,
    sweep: Sweep,
    always_live_bytes: TileVector,
    chip: Chip,
) -> TileVector:
    """The highest address in use while such vertices run; 0 on tiles without them.

    `sweep` is over the transient variables; `always_live_bytes` is one of its others.
    """
    reach, always = sweep.zeros(), sweep.zeros()
    where, values = sweep.spread(always_live_bytes)
    always[where] = values
    wanted = dict(_find_vertices(transient, steps))
    interleaved = [v for v in transient.values() if v.is_interleaved]
    # Interleaved variables of other vertices lie beside the partials, above the
    # operands, so they are taken out of the plain part below.
    fast = sweep.of_some(interleaved, liveness.intervals)
    small = sweep.of_some(_find_small(transient.values(), chip), liveness.intervals)
    for (step_id, held), (_, fast_held), (_, small_held) in zip(
        sweep.at(wanted), fast.at(wanted), small.at(wanted), strict=True
    ):
        operands, written = wanted[step_id]
        span, partials = sweep.spread(written)
        # Only tiles with partials count, so everything is cut to their segments.
        read = [
            functools.reduce(np.add, (_within(span, sweep, part) for part in parts))
            for parts in operands
        ]
        plain = always[span] + held[span] - fast_held[span]
        end = _end_of(plain - small_held[span] - sum(read), read, chip)
        # A boundary at the partials even if the plain region is not full: interleaved
        # memory begins at its own address.
        behind = np.maximum(end, chip.interleaved_start_bytes)
        start = _next_boundary(behind, chip.memory_element_bytes, chip)
        # Small variables that no gap has room for lie behind everything else.
        packed = plain + fast_held[span] + TAIL_BYTES
        end = np.maximum(start + fast_held[span] + TAIL_BYTES, packed)
        reach[span] = np.maximum(reach[span], np.where(partials, end, 0))
    return sweep.to_vector(reach)


def find_gathered(program: Program, steps: Numbering, chip: Chip) -> TileVector:
    """Where data end that copies bring together, from an element boundary on.

    What the copies read lies in front of them. Tiles that hold none of that only
    receive, and have no boundary.
    """
    size = chip.memory_element_bytes
    ends = {
        _gathered_end(source, program.variables[name].bytes_by_tile, size): None
        for name, source in _find_sources(program, steps)
    }
    return maximum_of([TileVector.zeros(program.num_tiles), *ends])


def _gathered_end(source: TileVector, gathered: TileVector, size: int) -> TileVector:
    return combine(
        lambda each: (
            ceil_div(each[0], size) * size + each[1] + TAIL_BYTES
            if each[0] and each[1]
            else 0
        ),
        [source, gathered],
    )


def _find_sources(
    program: Program, steps: Numbering
) -> Iterator[tuple[str, TileVector]]:
    """(gathered variable, what the step that first writes it reads)"""
    variables, seen = program.variables, set[str]()
    for row in steps:
        if not isinstance(row.step, Exchange | Execute):
            continue
        names, reads = row.step.writes, row.step.reads
        found = [n for n in names if variables[n].is_gathered and n not in seen]
        seen.update(found)
        for name in found:
            read = [variables[n] for n in reads if not variables[n].is_gathered]
            vectors = (v.bytes_by_tile for v in read)
            yield name, add_all(vectors, program.num_tiles)


def _find_small(variables: Iterable[Variable], chip: Chip) -> list[Variable]:
    """What fills gaps: no operand, and at most an element of it on any tile."""
    return [
        variable
        for variable in variables
        if not (variable.is_interleaved or variable.operand)
        and variable.bytes_by_tile.maximum <= chip.memory_element_bytes
    ]


def _find_vertices(
    transient: Mapping[str, Variable], steps: Numbering
) -> Iterator[tuple[int, tuple[list[list[TileVector]], TileVector]]]:
    """(step, (the parts of each operand, what is written interleaved))"""
    for row in steps:
        if not isinstance(row.step, Execute):
            continue
        step = row.step
        written = [n for n in step.writes if n in transient]
        partials = [name for name in written if transient[name].is_interleaved]
        if partials:
            read = [transient[name] for name in step.reads if name in transient]
            operands: dict[int, list[TileVector]] = {}
            for each in read:
                if each.operand:
                    operands.setdefault(each.operand, []).append(each.bytes_by_tile)
            written = transient[partials[-1]].bytes_by_tile
            yield row.id, (list(operands.values()), written)


def _within(span: slice, sweep: Sweep, vector: TileVector) -> Counts:
    """A vector on some of the segments."""
    values = sweep.zeros()
    where, found = sweep.spread(vector)
    values[where] = found
    return values[span]


def _end_of(below: Counts, read: Sequence[Counts], chip: Chip) -> Counts:
    """Where operands end that follow one another above what lies below."""
    end = below
    for number, size in enumerate(read):
        # The first operand may share an element with what lies below it, which the
        # vertex does not read. On a GC2 `operand_bytes` is one word of 64 bits:
        # operands lie side by side there.
        start = _next_boundary(end, chip.operand_bytes, chip) if number else end
        end = np.where(size, start + size, end)
    return end


def _next_boundary(address: Counts, size: int, chip: Chip) -> Counts:
    """The next multiple of a size, of twice the size among interleaved elements."""
    region, pair = chip.interleaved_start_bytes, 2 * size
    # Interleaved memory alternates between two elements word by word, so there a
    # boundary comes every two elements, counted from the start of the region.
    plain = np.minimum(-(-address // size) * size, region)
    interleaved = region - (region - address) // pair * pair
    return np.where(address > region, interleaved, plain)
