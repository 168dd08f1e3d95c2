"""Modelled telemetry: clock, temperatures, power and utilisation of a chip.

In: what has run on a chip, by its holder's `Activity`, and the chip's constants. Out: a
`Telemetry`, a pure function of both and of the time. Power follows what runs, from idle
to peak; temperatures follow power with the chip's thermal time constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from popple.device.activity import Activity
from popple.device.machine import Machine
from popple.device.registry import Holder
from popple.target import Chip

_IDLE = Activity()


@dataclass(frozen=True)
class Telemetry:
    """What sensors of a chip and of its board would show.

    `utilisation` is the share of the last seconds in which a program ran, from 0 to 1,
    and `session_utilisation` that of the time since its holder attached.
    """

    clock_hz: int
    die_temp_c: float
    board_temp_c: float
    ipu_power_w: float
    board_power_w: float
    utilisation: float
    session_utilisation: float


def read_telemetry(
    machine: Machine,
    chip_id: int,
    holder: Holder | None,
    now: float,
    holders: Iterable[Holder] = (),
) -> Telemetry:
    """The telemetry of a chip at `now`, in seconds since the epoch.

    `holder` is who holds the chip, if anybody does; `holders` are those of the other
    chips of the machine, which share its board. A chip without a holder is idle.
    """
    chip = machine.system.chip
    by_chip = {other.chip_id: other.activity.at(now) for other in holders}
    if holder is not None:
        by_chip[chip_id] = holder.activity.at(now)
    board = [by_chip.get(c, _IDLE) for c in list_board(machine, chip_id)]
    own = by_chip.get(chip_id, _IDLE)
    extra_heat = sum(_heat_watts(chip, activity) for activity in board)
    return Telemetry(
        clock_hz=chip.clock_hz,
        die_temp_c=chip.idle_die_celsius
        + chip.die_kelvin_per_watt * _heat_watts(chip, own),
        board_temp_c=chip.idle_board_celsius + chip.board_kelvin_per_watt * extra_heat,
        ipu_power_w=_watts(chip, own),
        board_power_w=sum(_watts(chip, activity) for activity in board),
        utilisation=own.load,
        session_utilisation=own.utilisation_since_attached(now) if holder else 0.0,
    )


def list_board(machine: Machine, chip_id: int) -> tuple[int, ...]:
    """The chips on the board of a chip, itself included."""
    size = min(machine.system.chips_per_board, machine.system.num_chips)
    first = chip_id // size * size
    return tuple(range(first, min(first + size, machine.system.num_chips)))


def _watts(chip: Chip, activity: Activity) -> float:
    return chip.idle_watts + activity.load * (chip.peak_watts - chip.idle_watts)


def _heat_watts(chip: Chip, activity: Activity) -> float:
    """The power above idle that the chip's temperature has followed so far."""
    return activity.heat * (chip.peak_watts - chip.idle_watts)
