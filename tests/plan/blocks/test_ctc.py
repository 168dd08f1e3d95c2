"""Splits of connectionist temporal classification over tiles."""

from popple.plan.blocks.ctc import CtcProblem, CtcSplit, find_split
from popple.plan.codelets.ctc import alpha_cycles, gradient_cycles
from tests.plan.machines import bow

CHIP = bow().chip
SPEECH = CtcProblem(time=375, batch=4, num_classes=36, num_labels=200, element_bytes=4)


def test_a_symbol_and_its_blank_take_two_sums_and_two_products() -> None:
    # 8 loads and stores, 2 branches, 2 x (16 + 1); gradients: 6 and 2 x (16 + 1) more.
    assert alpha_cycles(3, False) == 3 * 44
    assert gradient_cycles(3, True) == 3 * 84 + 2 * 17


def test_the_fastest_split_has_one_label_on_a_tile_and_two_halves_of_time() -> None:
    split = find_split(SPEECH, CHIP, 0.6)
    assert (split.time, split.labels, split.is_blank_apart) == (2, 200, True)
    # Time lasts as long on 2 parts of the batch as on 4, with fewer tiles; all on one
    # part would have twice the chances on every tile.
    assert (split.batch, split.num_tiles, split.num_loops) == (2, 2 * 2 * 201, 188)


def test_little_memory_makes_more_parts() -> None:
    tight = find_split(SPEECH, CHIP, 0.05)
    assert tight.temporary_bytes() <= 0.05 * CHIP.tile_memory_bytes
    assert tight.num_tiles > find_split(SPEECH, CHIP, 0.6).num_tiles


def test_what_never_fits_is_split_as_far_as_it_goes() -> None:
    assert find_split(SPEECH, CHIP, 1e-6).num_tiles <= CHIP.num_tiles


def test_an_odd_number_of_times_waits_in_the_middle() -> None:
    def loops(time: int) -> int:
        return CtcSplit(SPEECH, 1, time, 1, False).num_loops

    assert loops(3) == 125 * 2  # as long as 4 parts of 125 would take
    assert loops(4) == 94 * 2


def test_a_partition_with_the_last_blank_is_slower() -> None:
    with_blank, apart = (
        CtcSplit(SPEECH, 1, 2, 200, is_apart) for is_apart in (False, True)
    )
    assert with_blank.estimate(6, 4) - apart.estimate(6, 4) == 6 * 3 * 17 * 188
