"""The modelled cycles of runs in the log, if TF_POPLAR_FLAGS=--log_cycle_count asks."""

from __future__ import annotations

from popple.errors import PoppleError
from tensorflow_ipu import _notices

from .._device import poplar_flags
from .traced_programs import TracedProgram

__all__ = ["log_cycles"]


def log_cycles(program: TracedProgram) -> None:
    """Say what a run of the program takes; whichever tile is asked, as tiles wait."""
    if poplar_flags.read().log_cycle_count < 0:
        return
    try:
        cycles = program.cycles()
    except PoppleError as error:
        _notices.warn(f"the cycles of {program.name} are not known: {error}")
        return
    _notices.warn(f"{program.name} takes {cycles} cycles, as modelled.")
