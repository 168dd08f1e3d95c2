"""Memory taken by code and vertex state: what lies on a tile besides variables.

Sizes were read off a genuine profile of a Bow chip (one program, Poplar 3.3), tile by
tile; the comment at each constant says what was seen. Code stands once for every place
in the tree of steps, however often it is executed; the steps of outlined ops run the
code of another op and have none of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from popple.program import (
    Call,
    Category,
    ChipFinder,
    Codelet,
    ComputeSet,
    Exchange,
    Execute,
    GlobalExchange,
    If,
    Numbering,
    Program,
    Repeat,
    RepeatWhile,
    Step,
    StreamCopy,
    Switch,
    Sync,
    TileSum,
    TileVector,
    add_all,
    combine,
    maximum_of,
)
from popple.sim.liveness import is_always_live
from popple.sim.phases import CONTROLS_PER_MESSAGE, messages_by_tile
from popple.target import Chip
from popple.units import ceil_div

# Control code, in instructions. 320 B on every tile outside all steps; 20 B for a
# compute set; 4 B for an exchange, a sync and each third of a stream copy; about 20 B
# for a loop. Conditions and calls are taken to cost a compare, a branch and a load.
_PROGRAM_INSTRUCTIONS = 80
_EXECUTE_INSTRUCTIONS = 5
_EXCHANGE_INSTRUCTIONS = 1
_STREAM_INSTRUCTIONS = 3
_LOOP_INSTRUCTIONS = 5
_BRANCH_INSTRUCTIONS = 3
_CALL_INSTRUCTIONS = 2

# Exchange code, in instructions: one to enter, one per 64 words sent, two per message
# received (12 to 16 B for one message, 268 to 272 B for 32 messages and one word sent).
_ENTER_INSTRUCTIONS = 1
_WORDS_PER_SEND = 64
_WORD_BYTES = 4

# Host exchange: a tile that sends 140 B (one packet) has 104 B of code and 16 B of
# headers for it, one that sends 524 B (three packets) 144 B and 32 B.
_STREAM_CODE_INSTRUCTIONS = 21
_PACKET_CODE_INSTRUCTIONS = 5
_STREAM_HEADER_BYTES = 8
_PACKET_HEADER_BYTES = 8


# On all tiles of the chips that a step concerns: every one has to follow the program.
_INSTRUCTIONS_ON_CHIP: Mapping[type[Step], int] = {
    Exchange: _EXCHANGE_INSTRUCTIONS,
    GlobalExchange: _EXCHANGE_INSTRUCTIONS,
    Repeat: _LOOP_INSTRUCTIONS,
    RepeatWhile: _LOOP_INSTRUCTIONS,
    If: _BRANCH_INSTRUCTIONS,
    Switch: _BRANCH_INSTRUCTIONS,
    Call: _CALL_INSTRUCTIONS,
}

Span: TypeAlias = tuple[int, int]
"""Tiles from the first up to, not including, the second"""

_Pattern: TypeAlias = tuple[TileVector, TileVector, TileVector | None, bool]
"""Bytes sent and received, messages received, and whether pairs share their buses"""


def code_and_state(
    program: Program, steps: Numbering, chip: Chip
) -> dict[Category, TileVector]:
    """Bytes by tile of everything that is not a variable, by category."""
    every_tile = TileVector.constant(program.num_tiles, 1)
    stack_bytes = chip.num_workers * chip.worker_stack_bytes
    steps = _standing(program, steps)
    compute_sets = _compute_sets(steps)
    found = {
        Category.STACK: every_tile.scaled(stack_bytes + chip.supervisor_stack_bytes),
        Category.CONTROL_CODE: _control_code(program, steps, chip),
        Category.VERTEX_CODE: _vertex_code(program, compute_sets),
        Category.VERTEX_STATE: _vertex_state(program, compute_sets),
        **_transfer_code(program, steps, chip),
    }
    return {
        category: vector for category, vector in found.items() if not vector.is_zero
    }


def _standing(program: Program, steps: Numbering) -> Numbering:
    """The steps whose code stands somewhere: not those of outlined ops."""
    if not program.outlined:
        return steps
    return tuple(
        row for row in steps if getattr(row.step, "op", "") not in program.outlined
    )


def _compute_sets(steps: Numbering) -> list[ComputeSet]:
    """Every compute set once: executing it twice uses the same vertices."""
    by_name = {
        row.step.compute_set.name: row.step.compute_set
        for row in steps
        if isinstance(row.step, Execute)
    }
    return list(by_name.values())


def _vertex_state(program: Program, compute_sets: Iterable[ComputeSet]) -> TileVector:
    total = TileSum(program.num_tiles)
    for compute_set in compute_sets:
        for group in compute_set.vertices:
            total.add(group.count_by_tile, group.codelet.state_bytes)
    return total.to_vector()


def _vertex_code(program: Program, compute_sets: Iterable[ComputeSet]) -> TileVector:
    """The code of every codelet once on every tile that uses it."""
    spans: dict[Codelet, set[Span]] = defaultdict(set)
    for compute_set in compute_sets:
        for group in compute_set.vertices:
            spans[group.codelet].update(_busy_spans(group.count_by_tile))
    total = TileSum(program.num_tiles)
    for codelet, found in spans.items():
        for start, stop in _joined(sorted(found)):
            total.add_range(start, stop, codelet.code_bytes)
    return total.to_vector()


def _vertex_spans(compute_set: ComputeSet) -> Iterator[Span]:
    groups = compute_set.vertices
    return _joined(sorted(s for g in groups for s in _busy_spans(g.count_by_tile)))


def _busy_spans(vector: TileVector) -> Iterator[Span]:
    first = 0
    for count, value in vector.runs:
        if value:
            yield first, first + count
        first += count


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Sorted spans without overlaps."""
    end = 0
    for start, stop in spans:
        if stop > end:
            yield max(start, end), stop
            end = stop


def _control_code(program: Program, steps: Numbering, chip: Chip) -> TileVector:
    total = TileSum(program.num_tiles)
    total.add_range(0, program.num_tiles, _PROGRAM_INSTRUCTIONS)
    finder = ChipFinder(program)
    tiles = program.tiles_per_chip
    for row in steps:
        step = row.step
        if isinstance(step, Execute):
            for start, stop in _vertex_spans(step.compute_set):
                total.add_range(start, stop, _EXECUTE_INSTRUCTIONS)
        elif isinstance(step, StreamCopy):
            total.add(step.bytes_by_tile.presence(), _STREAM_INSTRUCTIONS)
        elif isinstance(step, Sync):
            total.add_range(0, program.num_tiles, _EXCHANGE_INSTRUCTIONS)
        elif size := _INSTRUCTIONS_ON_CHIP.get(type(step), 0):
            for each in finder.chips_of(step):
                total.add_range(each * tiles, (each + 1) * tiles, size)
    return total.to_vector().scaled(chip.instruction_bytes)


def _transfer_code(
    program: Program, steps: Numbering, chip: Chip
) -> dict[Category, TileVector]:
    """Code and packet headers of transfers between tiles, chips and the host."""
    sums: dict[Category, TileSum] = defaultdict(lambda: TileSum(program.num_tiles))
    for code in added_exchange_code(program, steps).values():
        sums[Category.EXCHANGE_CODE].add(code, chip.instruction_bytes)
    for row in steps:
        step = row.step
        if isinstance(step, StreamCopy):
            packets = _packets(step.bytes_by_tile, chip)
            _add_packets(packets, chip, sums[Category.HOST_CODE])
            _add_headers(packets, sums[Category.HOST_HEADER])
        elif isinstance(step, GlobalExchange):
            moved = maximum_of([step.sent_by_tile, step.received_by_tile])
            _add_packets(_packets(moved, chip), chip, sums[Category.GLOBAL_CODE])
            sent = _packets(step.sent_by_tile, chip)
            _add_headers(sent, sums[Category.GLOBAL_HEADER])
    return {category: total.to_vector() for category, total in sums.items()}


def added_exchange_code(program: Program, steps: Numbering) -> dict[int, TileVector]:
    """Instructions that exchanges add to every tile, by the number of the step."""
    exchanges = _Exchanges(program)
    return {
        row.id: exchanges.add(row.step)
        for row in steps
        if isinstance(row.step, Exchange)
    }


class _Exchanges:
    """The exchanges whose code stands already; equal code is reused.

    The compiler reuses exchange code (its option `opt.enableInternalExchangeReuse`).
    Transient variables of equal ops get equal addresses layer after layer, those that
    are always live have addresses of their own: in a genuine profile of 24 equal layers
    that share no functions, every layer but the first has a third of the first's code.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._seen: dict[_Pattern, set[tuple[str, ...]]] = defaultdict(set)

    def add(self, step: Exchange) -> TileVector:
        """Instructions that an exchange adds to every tile."""
        code = exchange_instructions(step)
        seen, fixed = self._seen[_pattern(step)], self._fixed(step)
        is_new, is_known = not seen, fixed in seen
        seen.add(fixed)
        if is_new:
            return code
        if is_known or not fixed:
            return code.scaled(0)
        variables = self._program.variables
        own = add_all((variables[name].bytes_by_tile for name in fixed), len(code))
        return combine(lambda each: each[0] if each[1] else 0, [code, own])

    def _fixed(self, step: Exchange) -> tuple[str, ...]:
        variables = self._program.variables
        names = dict.fromkeys((*step.reads, *step.writes))
        return tuple(name for name in names if is_always_live(variables[name]))


def _pattern(step: Exchange) -> _Pattern:
    messages = step.messages_by_tile
    return step.sent_by_tile, step.received_by_tile, messages, step.is_shared


def exchange_instructions(step: Exchange) -> TileVector:
    """Instructions of an exchange phase on every tile that takes part in it."""

    def instructions(values: Sequence[int]) -> int:
        sent, received, messages = values
        if not sent and not received:
            return 0
        sends = ceil_div(sent, _WORD_BYTES * _WORDS_PER_SEND)
        return _ENTER_INSTRUCTIONS + sends + messages * CONTROLS_PER_MESSAGE

    vectors = [step.sent_by_tile, step.received_by_tile, messages_by_tile(step)]
    return combine(instructions, vectors)


def _packets(bytes_by_tile: TileVector, chip: Chip) -> TileVector:
    size = chip.global_exchange_packet_bytes
    return bytes_by_tile.map(lambda num_bytes: ceil_div(num_bytes, size))


def _add_packets(packets: TileVector, chip: Chip, total: TileSum) -> None:
    total.add(packets.presence(), _STREAM_CODE_INSTRUCTIONS * chip.instruction_bytes)
    total.add(packets, _PACKET_CODE_INSTRUCTIONS * chip.instruction_bytes)


def _add_headers(packets: TileVector, total: TileSum) -> None:
    total.add(packets.presence(), _STREAM_HEADER_BYTES)
    total.add(packets, _PACKET_HEADER_BYTES)
