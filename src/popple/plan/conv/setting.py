"""Setting: what all candidates of one evaluation have in common."""

from __future__ import annotations

from dataclasses import dataclass

from popple.plan.conv.methods import Method
from popple.plan.conv.splits import Serial
from popple.plan.conv.transforms import Form
from popple.target import Chip


@dataclass(frozen=True)
class Setting:
    """A form, a method and serial parts on a chip."""

    form: Form
    method: Method
    chip: Chip
    serial: Serial
    is_joint: bool = False

    @property
    def phase_cycles(self) -> int:
        """Cost of an exchange phase besides its payload."""
        # The mean: tiles near the sync begin earlier than those far from it.
        return self.chip.exchange_latency_cycles + self.chip.mean_sync_delay_cycles

    @property
    def element_bytes(self) -> int:
        """Bytes of an operand's element."""
        return self.form.problem.dtype.num_bytes

    @property
    def partial_bytes(self) -> int:
        """Bytes of a partial sum."""
        return self.method.partials.num_bytes

    @property
    def is_cast(self) -> bool:
        """Whether partials and output differ in type."""
        # A reduction casts on its way; without one it is a phase of its own.
        return self.method.partials is not self.form.problem.output
