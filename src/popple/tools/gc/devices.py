"""Devices for tools: the one a command line names, held while a test runs.

In: an id, and GCDA_OPTIONS of the environment. Out: a `Bench`: a lease on the device
and the faults that were asked for. A lease is what keeps other programs away, and what
gc-monitor shows of the tool.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from popple.device import Lease, Machine, Pod, find_machine
from popple.device.events import record_event
from popple.device.faults import (
    DeviceOptions,
    Fault,
    FaultInjector,
    parse_device_options,
)
from popple.errors import UsageError
from popple.target import Chip, System, Target
from popple.tools.gc.tool import TestFailure

EVENT_VARIABLE = "IPU_APP_EVENT_RECORD_PATH"


@dataclass(frozen=True)
class Bench:
    """A device that is ours for a test, and the faults to simulate on it."""

    lease: Lease
    options: DeviceOptions
    injector: FaultInjector

    @property
    def machine(self) -> Machine:
        """The machine that the device is of."""
        return self.lease.machine

    @property
    def system(self) -> System:
        """The system that the device is of."""
        return self.lease.machine.system

    @property
    def chip(self) -> Chip:
        """The kind of chip."""
        return self.system.chip

    @property
    def chip_ids(self) -> tuple[int, ...]:
        """The chips of the device; faults count them from 0."""
        return self.lease.device.chip_ids

    @property
    def target(self) -> Target:
        """One chip of the device, for programs that run on each chip alone."""
        return Target(self.system, 1)


def read_device_options() -> DeviceOptions:
    """GCDA_OPTIONS as it is now."""
    return parse_device_options(os.environ.get("GCDA_OPTIONS", ""))


def take_device(device_id: int | None) -> Lease:
    """The device of that id, or the first free IPU.

    An id names a device of the machine that gc-monitor shows: that a copy of an elastic
    machine has one of the same id which is free helps nobody who tests this one.
    """
    machine = find_machine()
    if device_id is not None:
        machine = machine.without_copies()
    return Pod(machine).acquire(id=device_id)


@contextmanager
def hold_chips(chip_ids: Iterable[int]) -> Generator[dict[int, Lease], None, None]:
    """Hold single chips by their ids, all of them or none."""
    with ExitStack() as held:
        leases: dict[int, Lease] = {}
        for chip_id in sorted(chip_ids):
            leases[chip_id] = held.enter_context(take_device(chip_id))
            held.enter_context(leases[chip_id].activity.running())
        yield leases


@contextmanager
def take_bench(device_id: int | None) -> Generator[Bench, None, None]:
    """Hold a device for a test that runs on it; a simulated chip error ends it."""
    options = read_device_options()
    with take_device(device_id) as lease, lease.activity.running():
        bench = Bench(lease, options, FaultInjector(options))
        for fault in options.faults:
            _check_fault(fault, bench)
        for fault in bench.injector.strike("soc"):
            raise _make_failure(bench, fault)
        yield bench


def report_event(bench: Bench, description: str) -> None:
    """Leave an event record for monitoring programs, where one is asked for."""
    directory = os.environ.get(EVENT_VARIABLE, "")
    if directory:
        record_event(directory, bench.lease, description)


def _make_failure(bench: Bench, fault: Fault) -> TestFailure:
    what = f"IPU (SoC) error {fault.name} on device {bench.lease.device.id}."
    report_event(bench, what)
    return TestFailure(what, remedy="Reset it with gc-reset, and run the test again.")


def _check_fault(fault: Fault, bench: Bench) -> None:
    """Refuse a fault in a place that the device does not have."""
    chip = bench.chip
    bits = 8 if fault.kind == "memory" else 32
    limits = {
        "tile": chip.num_tiles,
        "address": chip.tile_memory_bytes,
        "bit": bits,
        "stuck": 2,
        "link": chip.num_links,
    }
    for key, limit in limits.items():
        value: int = getattr(fault, key)
        if value >= limit:
            raise UsageError(
                f"{key} of a {fault.kind} fault is {value}.",
                where="GCDA_OPTIONS",
                remedy=f"On {chip.name} it is at most {limit - 1}.",
            )
