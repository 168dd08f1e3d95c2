"""Tile memory of code, vertex state and stacks: everything that is not a variable.

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
from popple.sim.liveness import Interval
from popple.sim.reuse import ExchangeReuse
from popple.target import Chip
from popple.units import ceil_div

# Control code, in instructions. 320 B on every busy tile outside all steps; 20 B for a
# compute set; 4 B for an exchange, a sync and each third of a stream copy; about 20 B
# for a loop. Conditions and calls are taken to cost a compare, a branch and a load.
_PROGRAM_INSTRUCTIONS = 80
_EXECUTE_INSTRUCTIONS = 5
_EXCHANGE_INSTRUCTIONS = 1
_STREAM_INSTRUCTIONS = 3
_LOOP_INSTRUCTIONS = 5
_BRANCH_INSTRUCTIONS = 3
_CALL_INSTRUCTIONS = 2

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

Lives: TypeAlias = Mapping[str, Sequence[Interval]]
"""When transient variables live"""


def code_and_state(
    program: Program, steps: Numbering, lives: Lives, chip: Chip
) -> dict[Category, TileVector]:
    """Bytes by tile of everything that is not a variable, by category."""
    stack_bytes = chip.num_workers * chip.worker_stack_bytes
    steps = _standing(program, steps)
    compute_sets = _compute_sets(steps)
    busy = _busy_tiles(program, compute_sets)
    control = _control_code(program, steps, chip)
    found = {
        Category.STACK: busy.scaled(stack_bytes + chip.supervisor_stack_bytes),
        # Tiles without data and vertices have no program: their control code is not
        # counted.
        Category.CONTROL_CODE: combine(lambda each: each[0] * each[1], [control, busy]),
        Category.VERTEX_CODE: _vertex_code(program, compute_sets),
        Category.VERTEX_STATE: _vertex_state(program, compute_sets),
        Category.VERTEX_FIELD: _vertex_lists(program, compute_sets),
        **_transfer_code(program, steps, lives, chip),
    }
    return {
        category: vector for category, vector in found.items() if not vector.is_zero
    }


def _busy_tiles(program: Program, compute_sets: Iterable[ComputeSet]) -> TileVector:
    """1 on tiles that hold a variable or a vertex, else 0.

    Others stay out of every sync and are given no program: in PopLibs' benchmarks one
    decomposition on one of 1216 tiles takes 17 kB in all.
    """
    # Equal vectors are added once (`dict.fromkeys`): only presence is asked for.
    groups = (group for each in compute_sets for group in each.vertices)
    held = [variable.bytes_by_tile for variable in program.variables.values()]
    held += [group.count_by_tile for group in groups]
    return add_all(dict.fromkeys(held), program.num_tiles).presence()


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


def _vertex_lists(program: Program, compute_sets: Iterable[ComputeSet]) -> TileVector:
    total = TileSum(program.num_tiles)
    for compute_set in compute_sets:
        for group in compute_set.vertices:
            if group.list_bytes:
                total.add(group.count_by_tile, group.list_bytes)
    return total.to_vector()


def _vertex_code(program: Program, compute_sets: Iterable[ComputeSet]) -> TileVector:
    """The code of every codelet once on every tile that uses it."""
    spans: dict[Codelet, set[Span]] = defaultdict(set)
    for compute_set in compute_sets:
        for group in compute_set.vertices:
            spans[group.codelet].update(_busy_spans(group.count_by_tile))
    total = TileSum(program.num_tiles)
    for codelet, found in spans.items() if program.has_vertex_code else ():
        # Two compute sets may use a codelet on overlapping tiles, which hold its code
        # once.
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
    finder = program.chip_finder
    tiles = program.tiles_per_chip
    # By identity, with how often: repeated layers share their vertices.
    executed: dict[int, tuple[ComputeSet, int]] = {}
    for row in steps:
        step = row.step
        if isinstance(step, Execute):
            key = id(step.compute_set.vertices)
            _, known = executed.get(key, (step.compute_set, 0))
            executed[key] = step.compute_set, known + 1
        elif isinstance(step, StreamCopy):
            total.add(step.bytes_by_tile.presence(), _STREAM_INSTRUCTIONS)
        # A bare sync names no chips, so all tiles have its instruction.
        elif isinstance(step, Sync):
            total.add_range(0, program.num_tiles, _EXCHANGE_INSTRUCTIONS)
        elif size := _INSTRUCTIONS_ON_CHIP.get(type(step), 0):
            for each in finder.chips_of(step):
                total.add_range(each * tiles, (each + 1) * tiles, size)
    for compute_set, count in executed.values():
        for start, stop in _vertex_spans(compute_set):
            total.add_range(start, stop, count * _EXECUTE_INSTRUCTIONS)
    return total.to_vector().scaled(chip.instruction_bytes)


def _transfer_code(
    program: Program, steps: Numbering, lives: Lives, chip: Chip
) -> dict[Category, TileVector]:
    """Code and packet headers of transfers between tiles, chips and the host."""
    sums: dict[Category, TileSum] = defaultdict(lambda: TileSum(program.num_tiles))
    for code in added_exchange_code(program, steps, lives).values():
        sums[Category.EXCHANGE_CODE].add(code, chip.instruction_bytes)
    for row in steps:
        step = row.step
        if isinstance(step, StreamCopy):
            packets = _packets(step.bytes_by_tile, chip)
            _add_packets(packets, chip, sums[Category.HOST_CODE])
            _add_headers(packets, sums[Category.HOST_HEADER])
        elif isinstance(step, GlobalExchange):
            # Tiles that receive need code as well, but only senders prepare packet
            # headers.
            moved = maximum_of([step.sent_by_tile, step.received_by_tile])
            _add_packets(_packets(moved, chip), chip, sums[Category.GLOBAL_CODE])
            sent = _packets(step.sent_by_tile, chip)
            _add_headers(sent, sums[Category.GLOBAL_HEADER])
    return {category: total.to_vector() for category, total in sums.items()}


def added_exchange_code(
    program: Program, steps: Numbering, lives: Lives
) -> dict[int, TileVector]:
    """Instructions that exchanges add to every tile, by the number of the step."""
    exchanges = ExchangeReuse(program, lives)
    return {
        row.id: exchanges.add(row.step)
        for row in steps
        if isinstance(row.step, Exchange)
    }


def _packets(bytes_by_tile: TileVector, chip: Chip) -> TileVector:
    size = chip.global_exchange_packet_bytes
    return bytes_by_tile.map(lambda num_bytes: ceil_div(num_bytes, size))


def _add_packets(packets: TileVector, chip: Chip, total: TileSum) -> None:
    total.add(packets.presence(), _STREAM_CODE_INSTRUCTIONS * chip.instruction_bytes)
    total.add(packets, _PACKET_CODE_INSTRUCTIONS * chip.instruction_bytes)


def _add_headers(packets: TileVector, total: TileSum) -> None:
    total.add(packets.presence(), _STREAM_HEADER_BYTES)
    total.add(packets, _PACKET_HEADER_BYTES)
