"""Where data lie that a vertex needs in different memory elements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from popple.program import (
    ComputeSet,
    Execute,
    Program,
    Sequence,
    Variable,
)
from popple.sim import Memory
from popple.sim.elements import TAIL_BYTES
from popple.sim.liveness import find_liveness
from popple.sim.memory import CODE, find_memory
from popple.target import Chip
from tests.sim.machines import bow_chip, one_chip, tiles, use

ELEMENT = 16_384
REGION_1 = 13 * ELEMENT


def product(
    weights: int, field: int, kept: int = 0, num_partials: int = 1000, fast: bool = True
) -> Program:
    """A vertex reads x and w and writes p, while `kept` bytes stay."""
    vertex = Execute(ComputeSet("product", ()), ("x", "w"), ("p",))
    main = Sequence((use((), ("x", "w")), vertex, use(("p",))))
    return one_chip(
        main,
        Variable("x", tiles(field, 0, 0, 0), operand=1),
        Variable("w", tiles(weights, 0, 0, 0), operand=2),
        Variable("p", tiles(num_partials, 0, 0, 0), is_interleaved=fast),
        Variable("k", tiles(kept, 0, 0, 0), is_always_live=True),
    )


def memory_of(program: Program, chip: Chip | None = None) -> Memory:
    steps = program.steps
    liveness = find_liveness(program, steps)
    return find_memory(program, steps, liveness, chip or bow_chip())


OVERHEAD = memory_of(product(0, 4)).always_live_bytes[0]  # code and stacks


def end_of(program: Program, chip: Chip | None = None) -> int:
    return memory_of(program, chip).total_with_gaps[0]


def test_partials_lie_where_the_interleaved_region_begins() -> None:
    assert end_of(product(100, 1000)) == REGION_1 + 1000 + TAIL_BYTES


def test_partials_share_no_element_with_what_spills_out_of_the_plain_region() -> None:
    one_over = REGION_1 - OVERHEAD + 4
    assert end_of(product(0, one_over)) == REGION_1 + 2 * ELEMENT + 1000 + TAIL_BYTES
    assert end_of(product(0, one_over - 4)) == REGION_1 + 1000 + TAIL_BYTES


def test_operands_begin_in_elements_of_their_own() -> None:
    # Code, six elements and four bytes; the next one begins with the eighth element
    # and ends four bytes behind the 13 of the plain region.
    six = 6 * ELEMENT
    above = REGION_1 + 2 * ELEMENT + 1000 + TAIL_BYTES
    assert end_of(product(six + 4, six + 4)) == above


def test_parts_of_an_operand_share_elements() -> None:
    six = 6 * ELEMENT
    whole = product(six + 4, six + 4)
    parts = dict(whole.variables)
    parts["w"] = replace(parts["w"], operand=parts["x"].operand)
    # Twelve elements, eight bytes and the code fit below the partials.
    assert end_of(replace(whole, variables=parts)) == REGION_1 + 1000 + TAIL_BYTES


def test_operands_lie_side_by_side_on_a_chip_that_does_not_part_them() -> None:
    chip = replace(bow_chip(), operand_bytes=8)
    field = REGION_1 - OVERHEAD + 4
    end = end_of(product(100, field), chip)
    assert end == REGION_1 + 2 * ELEMENT + 1000 + TAIL_BYTES


@pytest.mark.parametrize("kept", [0, 8 * ELEMENT])
def test_what_stays_lies_below(kept: int) -> None:
    field = REGION_1 - OVERHEAD + 4 - kept
    end = end_of(product(0, field, kept))
    assert end == REGION_1 + 2 * ELEMENT + 1000 + TAIL_BYTES


def test_other_interleaved_data_lie_beside_the_partials() -> None:
    program = product(0, 1000)
    result = Variable("r", tiles(500, 0, 0, 0), is_interleaved=True)
    earlier = Execute(ComputeSet("earlier", ()), (), ("r",))
    assert isinstance(program.main, Sequence)
    steps = (earlier, *program.main.steps, use(("r",)))
    program = one_chip(Sequence(steps), *program.variables.values(), result)
    assert end_of(program) == REGION_1 + 500 + 1000 + TAIL_BYTES


def with_live(program: Program, size: int) -> Program:
    """The program with a variable that is alive all the while and not read."""
    other = Variable("o", tiles(size, 0, 0, 0))
    assert isinstance(program.main, Sequence)
    steps = (use((), ("o",)), *program.main.steps, use(("o",)))
    return one_chip(Sequence(steps), *program.variables.values(), other)


def test_small_live_data_fill_gaps() -> None:
    # The field ends one word into an interleaved pair, whose rest is a gap.
    program = product(0, REGION_1 - OVERHEAD + 4)
    alone = end_of(program)
    overhead = memory_of(with_live(program, 4)).always_live_bytes[0] - OVERHEAD
    assert end_of(with_live(program, ELEMENT - overhead)) == alone
    # What is larger than an element lies below, and moves the field to the next pair.
    assert end_of(with_live(program, 2 * ELEMENT)) == alone + 2 * ELEMENT


def test_plain_results_leave_no_gap() -> None:
    memory = memory_of(product(100, REGION_1, fast=False))
    assert memory.total_with_gaps == memory.total


def test_gaps_decide_whether_a_program_fits() -> None:
    chip = bow_chip()
    field = chip.tile_memory_bytes - 4 * ELEMENT - OVERHEAD - 100
    memory = memory_of(product(100, field, num_partials=2 * ELEMENT))
    assert memory.total.maximum < chip.tile_memory_bytes
    assert not memory.fits
    # The same bytes would fit without the rule.
    free = product(100, field, num_partials=2 * ELEMENT, fast=False)
    assert memory_of(free).fits


def gathering(source: int, gathered: int) -> Program:
    """Copies bring `gathered` bytes together, `source` of which lie on the tile."""
    main = Sequence((use((), ("x",)), use(("x",), ("g",)), use(("g",))))
    return one_chip(
        main,
        Variable("x", tiles(source, 0, 0, 0)),
        Variable("g", tiles(gathered, 0, 0, 0), is_gathered=True),
    )


def test_what_copies_gather_lies_behind_what_they_read_and_that_behind_code() -> None:
    # One element of code, as few as it has; what is read takes one, then two.
    assert end_of(gathering(100, 1000)) == 2 * ELEMENT + 1000 + TAIL_BYTES
    assert end_of(gathering(ELEMENT + 4, 1000)) == 3 * ELEMENT + 1000 + TAIL_BYTES


def test_what_arrives_from_other_tiles_alone_leaves_no_gap() -> None:
    memory = memory_of(gathering(0, 1000))
    assert memory.total_with_gaps == memory.total


def test_without_code_what_copies_read_lies_lowest() -> None:
    memory = memory_of(gathering(100, 1000))
    data = {c: v for c, v in memory.always_live.items() if c not in CODE}
    bare = replace(memory, always_live=data)
    assert bare.total_with_gaps[0] == ELEMENT + 1000 + TAIL_BYTES
