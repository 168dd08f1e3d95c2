"""Vertex formulas against hardware, and against numbers worked out by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from popple.plan.conv.vertices import (
    AmpUnit,
    Hmac,
    TileWork,
    amp_1x1_cycles,
    amp_nx1_cycles,
    cast_cycles,
    copy_cycles,
    hmac_cycles,
    outer_product_cycles,
    reduce_cycles,
    slic_cycles,
    vmac_cycles,
)

HALF_16 = AmpUnit("f16", load_cycles=64, num_units=16)
MEASURED = (
    Path(__file__).parents[2] / "calibration/data/bow_convpartial1x1_measured.csv"
)


def work_of(
    elements: int = 1,
    in_groups: int = 1,
    out_groups: int = 1,
    rows: int = 1,
    kernel: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> TileWork:
    numbers = (groups, rows, elements, *kernel, in_groups, out_groups)
    return TileWork(*(np.array([number], dtype=np.int64) for number in numbers))


def test_amp_1x1_by_hand() -> None:
    # 50 + 6*7 of zeroing, 13 + 11 + 18 + 7 + 64 of loops and load; 32 elements are 6
    # for the busiest worker: 6 * (37 + 4*3 - 7).
    expected = 50 + 42 + 13 + 11 + 18 + 7 + 64 + 6 * 42
    assert amp_1x1_cycles(work_of(32), HALF_16)[0] == expected == 457


def test_amp_1x1_equals_hardware_within_two_percent() -> None:
    with MEASURED.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 80
    for row in rows:
        cycles = amp_1x1_cycles(work_of(int(row["N"])), HALF_16)[0]
        assert cycles == pytest.approx(float(row["cycles_per_tile_derived"]), rel=0.02)


@pytest.mark.parametrize(
    ("kind", "units", "depth", "rate"),
    [
        ("f16", 16, 16, 64),  # half in, half out
        ("f16", 8, 16, 32),  # half in, float out
        ("f16-mk1", 8, 16, 32),
        ("f32", 16, 8, 16),
        ("f32", 8, 8, 8),
        ("f8", 16, 32, 128),
    ],
)
def test_amp_reaches_the_peak_of_the_data_sheets(
    kind: str, units: int, depth: int, rate: int
) -> None:
    unit = AmpUnit(kind, load_cycles=64, num_units=units)
    few, many = (amp_1x1_cycles(work_of(60_000, n), unit)[0] for n in (10, 11))
    assert 60_000 * depth * units / (many - few) == pytest.approx(rate, rel=0.01)


def test_amp_nx1_costs_a_pass_for_each_kernel_position() -> None:
    two, three = (
        amp_nx1_cycles(work_of(600, kernel=(1, k)), HALF_16)[0] for k in (2, 3)
    )
    # One row cut into six: 18 + 28 + 4*(100 - 3) a worker; load 64 + 15 + 3 and 12.
    assert three - two == 6 * (18 + 28 + 4 * 97) + 12 + 82


def test_taller_weight_loads_save_passes() -> None:
    work = work_of(600, kernel=(4, 1))
    assert amp_nx1_cycles(work, HALF_16, 4)[0] < amp_nx1_cycles(work, HALF_16)[0] / 2


def test_slic_takes_four_kernel_columns_at_once() -> None:
    three, four, five = (
        slic_cycles(work_of(600, kernel=(1, k)), HALF_16, 1, True)[0] for k in (3, 4, 5)
    )
    assert three == four < five


def test_hmac_from_halves_to_floats_by_hand() -> None:
    vertex = Hmac(16, is_float=False, has_float_partials=True)
    # 3 + 3 + 1 and 16 / 4, of which one is saved.
    assert vertex.dot_cycles == 10
    # A worker does 10 of 60, with the vertex for single positions.
    worker = 16 + 16 - 15 + 13 + 1 + 10 * (2 + 10)
    zero = 6 * (5 + 14 - 9)
    expected = 65 - 10 + 6 * (9 + 15) + 23 + 15 + 10 + 6 * worker + zero
    assert hmac_cycles(work_of(60), vertex)[0] == expected


def test_hmac_of_other_types_by_hand() -> None:
    single = Hmac(16, is_float=True, has_float_partials=True)
    assert single.dot_cycles == 3 + 3 + 1 + 16 // 2
    worker = 16 + 16 + 19 + 10 * (7 + single.dot_cycles)
    expected = 58 + 6 * 9 + 23 + 15 + 10 + 6 * worker + 6 * (5 + 14 - 9)
    assert hmac_cycles(work_of(60), single)[0] == expected
    half = Hmac(16, is_float=False, has_float_partials=False)
    assert (half.out_group, half.dot_cycles) == (2, 2 * 3 + 1 + 3 + 1 + 16 // 4 - 1)


def test_hmac_of_odd_channels_loads_in_turn() -> None:
    odd, even = (Hmac(n, False, True).dot_cycles for n in (15, 16))
    assert odd - even == 2 * 15 + 1 - 4


def test_hmac_deals_rows_to_workers() -> None:
    vertex = Hmac(16, is_float=True, has_float_partials=True)
    one, six, seven = (hmac_cycles(work_of(10, rows=r), vertex)[0] for r in (1, 6, 7))
    assert one < six < seven


def test_vmac_grows_by_three_cycles_for_each_kernel_position() -> None:
    one, two = (vmac_cycles(work_of(600, kernel=(1, k)), 4, 4)[0] for k in (1, 2))
    assert two - one == 6 * 100 * 3


def test_outer_product_by_hand() -> None:
    # 64 outputs for each of 10 elements a worker: 25 + 11 + 10*(6 + 52/4).
    assert outer_product_cycles(work_of(60), 64, 4)[0] == 6 * (36 + 10 * 19)


def test_reduce_cast_and_copy_by_hand() -> None:
    outputs, depth = np.array([240]), np.array([8])
    # 40 floats a worker are 10 accumulators: 32 + 10*(3*8 + 8).
    assert reduce_cycles(outputs, depth, 4)[0] == 6 * (32 + 320)
    assert cast_cycles(outputs)[0] == 12 + 6 * (26 + 20)
    # 800 bytes by 2 with a quarter on top.
    assert copy_cycles(800, 2) == 500
