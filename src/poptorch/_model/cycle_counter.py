"""The counter of cycles that `Options.logCycleCount` asks for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .._device import is_ipu_model
from .._errors import Error
from .._logging import logger
from ..options import Options

if TYPE_CHECKING:
    from .compiled_model import CompiledModel

__all__ = ["check_cycle_counter", "count_cycles", "log_cycles"]


def counts_cycles(options: Options) -> bool:
    """Whether cycles are to be counted."""
    return bool(options._Popart.options.get("instrumentWithHardwareCycleCounter"))


def check_cycle_counter(options: Options) -> None:
    """Error if cycles are to be counted where there are none."""
    if counts_cycles(options) and is_ipu_model(options):
        raise Error("Cycle count logging is only supported on actual IPU hardware.")


def count_cycles(options: Options, compiled: CompiledModel | None) -> int:
    """Cycles of one call, as the model of the IPU has them."""
    check_cycle_counter(options)
    if not counts_cycles(options):
        raise Error(
            "Cycle count logging is disabled. Please set option logCycleCount to "
            "True to enable."
        )
    if compiled is None or not compiled.session.has_run:
        raise Error("Please run the model at least once before obtaining cycle count.")
    return compiled.cost.cycles()


def log_cycles(options: Options, compiled: CompiledModel | None) -> None:
    """Write the cycles of a call to the log, if they are counted."""
    if counts_cycles(options) and logger.isEnabledFor(logging.DEBUG):
        cycles = count_cycles(options, compiled)
        logger.debug("Total number of IPU cycles: %d", cycles)
