"""Energy summary of a report: joules, watts and joules per sample, as estimated.

A genuine report says nothing about it. In: the facts of a report by key. Out: an
`EnergySummary`, or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from popple.report.parts.extras import InfoValue

ENERGY_KEYS = ("idle_joules", "compute_joules", "exchange_joules")


@dataclass(frozen=True)
class EnergySummary:
    """Estimated joules of one run of one replica, by cause."""

    idle_joules: float
    compute_joules: float
    exchange_joules: float
    mean_watts: float
    joules_per_sample: float | None

    @property
    def joules(self) -> float:
        """All causes together."""
        return self.idle_joules + self.compute_joules + self.exchange_joules


def summarize_energy(
    info: Mapping[str, InfoValue], seconds: float
) -> EnergySummary | None:
    """The estimate in a report of a run that took so long."""
    # Watts need a time; a report of a program that never ran has none.
    if not seconds or any(key not in info for key in ENERGY_KEYS):
        return None
    idle, compute, exchange = (float(info[key]) for key in ENERGY_KEYS)
    joules = idle + compute + exchange
    samples = float(info.get("samples_per_run", 0))
    # Samples are those of all replicas.
    whole = joules * float(info.get("replicas", 1))
    return EnergySummary(
        idle, compute, exchange, joules / seconds, whole / samples if samples else None
    )
