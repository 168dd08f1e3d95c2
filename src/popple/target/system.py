"""Several chips and what joins them: links, gateways, host, streaming memory.

In: constants from a TOML file and a `Chip`. Out: a frozen, validated `System`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from popple.errors import TargetError
from popple.target.chip import Chip
from popple.target.schema import Sources, constant, verify_constants

TOPOLOGIES = ("single", "ladder", "mesh", "torus")


@dataclass(frozen=True, kw_only=True)
class System:
    """A machine one can buy or imagine: chips of one kind, and the ways between them.

    Rates are usable bytes per second in one direction. `link_bytes_per_second` is what
    one chip sends over all its links together; `neighbour_bytes_per_second` what it
    sends to one neighbour over the narrowest bundle. The first `rack_chips` chips, the
    next `rack_chips` and so on reach each other by link; beyond that data passes the
    gateways, whose rate is per machine. `external_sync_ns` is what a sync of all chips
    adds to a sync inside one. `device_order` lists the chips in the order in which
    they join groups (empty: in the order of their ids).
    """

    name: str
    chip: Chip
    aliases: tuple[str, ...] = field(default=(), compare=False)
    device_order: tuple[int, ...] = ()

    num_chips: int = field(metadata=constant("chips"))
    chips_per_machine: int = field(metadata=constant("chips"))
    topology: str = field(metadata=constant("name", str, choices=TOPOLOGIES))
    rack_chips: int = field(metadata=constant("chips"))

    link_bytes_per_second: float = field(
        metadata=constant("B/s", float, can_be_zero=True)
    )
    neighbour_bytes_per_second: float = field(
        metadata=constant("B/s", float, can_be_zero=True)
    )
    link_latency_ns: float = field(metadata=constant("ns", float))
    external_sync_ns: float = field(metadata=constant("ns", float, can_be_zero=True))
    gateway_bytes_per_second: float = field(
        metadata=constant("B/s", float, can_be_zero=True)
    )
    host_bytes_per_second: float = field(metadata=constant("B/s", float))
    host_latency_ns: float = field(metadata=constant("ns", float))
    streaming_memory_bytes_per_machine: int = field(
        metadata=constant("B", can_be_zero=True)
    )
    streaming_bytes_per_second: float = field(
        metadata=constant("B/s", float, can_be_zero=True)
    )

    sources: Sources = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        verify_constants(self, self.name)
        self._verify_groups()
        self._verify_joints()
        self._verify_device_order()

    def _verify_groups(self) -> None:
        for key in ("chips_per_machine", "rack_chips"):
            group: int = getattr(self, key)
            if self.num_chips % group:
                raise TargetError(
                    f"{key}, {group}, does not divide num_chips, {self.num_chips}.",
                    where=self.name,
                    remedy=f"Set {key} to a divisor of {self.num_chips}.",
                )

    def _verify_joints(self) -> None:
        several = self.num_chips > 1
        if several == (self.topology == "single"):
            known = ", ".join(TOPOLOGIES[1:]) if several else "single"
            self._refuse(
                f"topology is {self.topology!r}", f"Set it to one of: {known}."
            )
        links = min(self.link_bytes_per_second, self.neighbour_bytes_per_second)
        if several and not links:
            self._refuse("its links carry no data", "Set both link rates above 0 B/s.")
        if self.num_chips > self.rack_chips and not self.gateway_bytes_per_second:
            self._refuse(
                f"rack_chips is {self.rack_chips} and no gateway joins the racks",
                "Raise rack_chips or set gateway_bytes_per_second above 0 B/s.",
            )
        if self.streaming_memory_bytes_per_machine and not (
            self.streaming_bytes_per_second
        ):
            self._refuse(
                "its streaming memory carries no data",
                "Set streaming_bytes_per_second above 0 B/s.",
            )

    def _verify_device_order(self) -> None:
        order = self.device_order
        if order and sorted(order) != list(range(self.num_chips)):
            self._refuse(
                "device_order does not name each chip once",
                f"List every number from 0 to {self.num_chips - 1}, or leave it out.",
            )

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise TargetError(
            f"The system has {self.num_chips} chips, but {what}.",
            where=self.name,
            remedy=remedy,
        )
