"""Counters of what runs, and the telemetry that is modelled from them."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.device import (
    Activity,
    ActivityMeter,
    Holder,
    Pod,
    Telemetry,
    find_machine,
    list_board,
    read_telemetry,
)
from popple.device.activity import read_activity

NOW = 1_000_000.0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def meter(tmp_path: Path, clock: Clock) -> ActivityMeter:
    return ActivityMeter(tmp_path / "activity", 0o600, 30.0, clock)


def test_a_new_lease_has_run_nothing(meter: ActivityMeter, tmp_path: Path) -> None:
    expected = Activity(attached=NOW, changed=NOW, heat_seconds=30.0)
    assert read_activity(tmp_path / "activity") == expected


def test_runs_and_busy_seconds(
    meter: ActivityMeter, clock: Clock, tmp_path: Path
) -> None:
    for _ in range(3):
        clock.now += 1
        with meter.running():
            clock.now += 3
    found = read_activity(tmp_path / "activity")
    assert (found.runs, found.running, found.busy_seconds) == (3, 0, 9.0)
    assert found.utilisation_since_attached(clock.now) == 0.75
    assert found.utilisation_since_attached(clock.now + 12) == 0.375


def test_a_run_that_goes_on_counts(
    meter: ActivityMeter, clock: Clock, tmp_path: Path
) -> None:
    with meter.running():
        clock.now += 100
        found = read_activity(tmp_path / "activity")
        assert found.busy_seconds == 0
        assert found.at(clock.now).busy_seconds == 100
        assert found.at(clock.now).load > 0.99


def test_a_run_that_fails_ends(meter: ActivityMeter, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), meter.running():
        raise ZeroDivisionError
    assert read_activity(tmp_path / "activity").running == 0


def test_runs_of_several_threads(meter: ActivityMeter, tmp_path: Path) -> None:
    def run() -> None:
        for _ in range(200):
            with meter.running():
                pass

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_activity(tmp_path / "activity")
    assert (found.runs, found.running) == (800, 0)


def test_a_meter_that_ended_writes_nothing(
    meter: ActivityMeter, tmp_path: Path
) -> None:
    with meter.running():
        meter.close()
        (tmp_path / "activity").write_bytes(b"")
    assert (tmp_path / "activity").read_bytes() == b""


def test_a_file_that_another_user_shortens_does_no_harm(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "shared"
    path.touch()
    meter = ActivityMeter(path, None, 30.0, clock)
    path.write_bytes(b"")
    with meter.running():
        assert read_activity(path).runs == 1


@pytest.mark.parametrize("content", [b"", b"x" * 10])
def test_a_damaged_file_says_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "activity").write_bytes(content)
    assert read_activity(tmp_path / "activity") == Activity()
    assert read_activity(tmp_path / "absent") == Activity()


steps = st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=8)


@given(steps, st.booleans())
def test_time_can_pass_in_one_step_or_in_several(
    parts: list[float], is_running: bool
) -> None:
    start = Activity(running=is_running, changed=NOW, load=0.3, heat=0.6)
    later = start
    for part in parts:
        later = later.at(later.changed + part)
    at_once = start.at(later.changed)
    assert later.busy_seconds == pytest.approx(at_once.busy_seconds, abs=1e-6)
    assert later.load == pytest.approx(at_once.load, abs=1e-9)
    assert later.heat == pytest.approx(at_once.heat, abs=1e-9)


def test_the_past_changes_nothing() -> None:
    activity = Activity(running=1, changed=NOW)
    assert activity.at(NOW - 5) == activity


# -- telemetry


def holder(chip_id: int, activity: Activity) -> Holder:
    return Holder(chip_id, os.getpid(), "python", "me", "now", activity)


BUSY = Activity(running=1, attached=NOW - 1e6, changed=NOW - 1e6, heat_seconds=30.0)


def read(activity: Activity | None, now: float = NOW, *others: Activity) -> Telemetry:
    """The telemetry of chip 0, with other chips beside it."""
    holders = [holder(c, found) for c, found in enumerate(others, start=1)]
    own = None if activity is None else holder(0, activity)
    return read_telemetry(find_machine(), 0, own, now, holders)


def test_an_idle_chip() -> None:
    # As a Bow Pod64 showed itself to gc-monitor.
    found = read(None)
    assert found == Telemetry(
        clock_hz=1_850_000_000,
        die_temp_c=34.5,
        board_temp_c=27.2,
        ipu_power_w=57.0,
        board_power_w=114.0,
        utilisation=0.0,
        session_utilisation=0.0,
    )


def test_a_busy_chip_is_at_its_peak() -> None:
    found = read(BUSY)
    assert found.ipu_power_w == pytest.approx(375)
    assert found.utilisation == pytest.approx(1)
    assert found.session_utilisation == pytest.approx(1)
    assert 60 < found.die_temp_c < 80


def test_a_neighbour_warms_the_board_and_not_the_die() -> None:
    alone, together = read(None), read(None, NOW, BUSY)
    assert together.board_power_w == pytest.approx(57 + 375)
    assert together.board_temp_c > alone.board_temp_c
    assert together.die_temp_c == alone.die_temp_c
    assert together.utilisation == 0


def test_other_boards_do_not_matter() -> None:
    far = (Activity(), BUSY, BUSY)
    assert read(None, NOW, *far).board_power_w == read(None).board_power_w
    assert list_board(find_machine(), 3) == (2, 3)
    assert list_board(find_machine("c600x8"), 3) == (3,)
    assert list_board(find_machine("bow"), 0) == (0,)


def test_power_follows_at_once_and_temperature_later() -> None:
    started = replace(BUSY, attached=NOW, changed=NOW)
    first, later, last = (read(started, NOW + s) for s in (1, 10, 300))
    assert first.ipu_power_w < later.ipu_power_w < last.ipu_power_w <= 375
    # After ten seconds the power is there, the heat is not.
    assert later.ipu_power_w > 0.95 * last.ipu_power_w
    assert later.die_temp_c - 34.5 < 0.5 * (last.die_temp_c - 34.5)


@given(
    load=st.floats(0, 1),
    heat=st.floats(0, 1),
    after=st.floats(0, 1e6),
    runs=st.booleans(),
)
def test_telemetry_stays_within_its_bounds(
    load: float, heat: float, after: float, runs: bool
) -> None:
    activity = Activity(
        running=runs, changed=NOW, load=load, heat=heat, heat_seconds=30.0
    )
    found = read(activity, NOW + after)
    assert 57 <= found.ipu_power_w <= 375.0001
    assert 34.5 <= found.die_temp_c <= 70
    assert 0 <= found.utilisation <= 1.0001


def test_telemetry_of_a_lease() -> None:
    pod = Pod(find_machine())
    with pod.acquire(num_chips=2) as lease:
        with lease.activity.running():
            first, second = pod.holders()
        assert first.activity.running == 1
        assert first.activity == second.activity
        assert first.activity.heat_seconds == pod.system.chip.thermal_seconds
