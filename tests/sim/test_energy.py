"""Energy: what the simple power model promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from popple.program import Exchange, Repeat, Sequence
from popple.sim import Energy, simulate
from popple.sim.energy import estimate_energy, joules_per_tile_cycle
from tests.sim.machines import bow_chip, compute, make_target, one_chip, tiles

CHIP = bow_chip()
SECOND = CHIP.clock_hz


def test_a_chip_with_nothing_to_do_draws_its_idle_power() -> None:
    energy = estimate_energy(CHIP, 1, SECOND, 0, 0)
    assert energy.mean_watts == pytest.approx(CHIP.idle_watts)


def test_all_tiles_computing_draw_the_peak() -> None:
    energy = estimate_energy(CHIP, 1, SECOND, SECOND * CHIP.num_tiles, 0)
    assert energy.mean_watts == pytest.approx(CHIP.peak_watts)


def test_full_exchange_stays_below_the_peak() -> None:
    each_second = CHIP.num_tiles * CHIP.exchange_bytes_per_cycle * SECOND
    energy = estimate_energy(CHIP, 1, SECOND, 0, each_second)
    assert CHIP.idle_watts < energy.mean_watts < CHIP.peak_watts


def test_a_byte_costs_what_the_chip_says() -> None:
    energy = estimate_energy(CHIP, 1, SECOND, 0, 10**12)
    assert energy.exchange_joules == pytest.approx(CHIP.exchange_picojoules_per_byte)


def test_replicas_draw_together_what_each_draws_alone() -> None:
    one = Energy(2.0, 10.0, 20.0, 30.0)
    assert one.of_replicas(4) == Energy(2.0, 40.0, 80.0, 120.0)
    assert one.of_replicas(4).mean_watts == 4 * one.mean_watts


def test_nothing_that_takes_no_time_has_a_power() -> None:
    assert Energy().mean_watts == 0


def test_a_program_pays_for_every_execution_of_every_tile() -> None:
    # 10 + 20 + 30 cycles on three of four tiles, five times
    program = one_chip(Repeat(5, compute("c", 10, 20, 30, 0)))
    target = make_target()
    energy = simulate(program, target).energy
    assert energy.compute_joules == pytest.approx(
        300 * joules_per_tile_cycle(target.chip)
    )
    assert energy.exchange_joules == 0


def test_bytes_that_arrive_are_paid_for() -> None:
    # One tile sends 8 bytes to each of three others.
    exchange = Exchange("x", tiles(8, 0, 0, 0), tiles(0, 8, 8, 8))
    energy = simulate(one_chip(exchange), make_target()).energy
    assert energy.exchange_joules == pytest.approx(24 * 12e-12)


def test_parts_add_up_whatever_the_program() -> None:
    exchange = Exchange("x", tiles(8, 0, 0, 0), tiles(0, 8, 8, 8))
    main = Sequence((compute("c", 10, 20, 30, 0), exchange))
    simulation = simulate(one_chip(main), make_target())
    energy = simulation.energy
    assert energy.seconds == simulation.seconds
    assert energy.joules == pytest.approx(energy.mean_watts * energy.seconds)
    chip = simulation.target.chip
    assert chip.idle_watts < energy.mean_watts < chip.peak_watts


def test_a_slower_clock_computes_for_the_same_power() -> None:
    slow = replace(CHIP, clock_hz=CHIP.clock_hz // 2)
    cycles = slow.clock_hz
    energy = estimate_energy(slow, 1, cycles, cycles * slow.num_tiles, 0)
    assert energy.mean_watts == pytest.approx(CHIP.peak_watts)
