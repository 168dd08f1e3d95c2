"""Partitions, as V-IPU gives them: some chips of a pod, seen as a system of their own.

In: a name and a number of chips, a power of two. Out: a `Partition`, and the `Machine`
that programs see: its ids count from 0 again. Without a pod, a partition has a machine
of its own, of the default kind and large enough. Partitions of one pod share no chip.

    <pod>/partitions.json       those of a pod; who created the pod makes them
    <state>/partitions.json     those without a pod
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from popple.device.environment import Environment, read_environment
from popple.device.machine import Machine, load_default_system, make_machine
from popple.device.numbering import number_devices
from popple.device.pods import CreatedPod, find_pod_in_force, list_pods
from popple.device.registry import Registry
from popple.device.state import (
    check_name,
    find_roots,
    make_directory,
    read_json,
    saying_where,
    write_json,
)
from popple.errors import DeviceBusyError, DeviceError, TargetError, suggest
from popple.target import System, find_larger_system, list_systems

_FILE = "partitions.json"
# How V-IPU names the files that it writes for the fabric.
_CONFIG_NAME = re.compile(r"(?P<name>.+)_gcd\d+_ipuof\.conf")


@dataclass(frozen=True)
class Partition:
    """Chips of a machine under a name; `created` is a UTC time in ISO 8601.

    `pod` is the name of the pod that the chips are of; empty without one.
    """

    name: str
    pod: str
    created: str
    machine: Machine

    @property
    def num_chips(self) -> int:
        """Chips in the partition."""
        return len(self.machine.chips)


def list_partitions(
    environ: Mapping[str, str] | None = None,
) -> tuple[Partition, ...]:
    """All partitions that this user may use, by name."""
    homes = _list_homes(read_environment(environ), list_pods(environ))
    found = (partition for home in homes for partition in home.read())
    return tuple(sorted(found, key=lambda partition: partition.name))


def find_partition(
    name: str, environ: Mapping[str, str] | None = None
) -> Partition | None:
    """The partition of that name."""
    return next((p for p in list_partitions(environ) if p.name == name), None)


def get_partition(name: str, environ: Mapping[str, str] | None = None) -> Partition:
    """As `find_partition`, but there is one."""
    found = find_partition(name, environ)
    if found is None:
        names = [partition.name for partition in list_partitions(environ)]
        known = suggest(name, names) if names else "There is none yet."
        raise DeviceError(
            f"There is no partition {name!r}.",
            remedy=f"{known} Create it with 'vipu create partition {name} --size N', "
            "or unset IPUOF_VIPU_API_PARTITION_ID and IPUOF_CONFIG_PATH.",
        )
    return found


def create_partition(
    name: str, num_chips: int, environ: Mapping[str, str] | None = None
) -> Partition:
    """Set chips of the pod in force aside under a name."""
    check_name(name, "partition")
    _check_size(num_chips)
    environment = read_environment(environ)
    home = _get_home(environment)
    with home.registry.guard():
        if find_partition(name, environ) is not None:
            raise DeviceError(
                f"There is a partition {name!r} already.",
                remedy="Choose another name, or remove it first.",
            )
        origin, chips = home.choose(name, num_chips, environment)
        created = datetime.now(timezone.utc).isoformat()
        home.add(name, {"system": origin, "chips": list(chips), "created": created})
    return get_partition(name, environ)


def remove_partition(
    name: str, environ: Mapping[str, str] | None = None, *, force: bool = False
) -> Partition:
    """Give the chips back; one that a program uses is kept unless `force` is said."""
    partition = get_partition(name, environ)
    homes = _list_homes(read_environment(environ), list_pods(environ))
    home = next(home for home in homes if home.pod_name == partition.pod)
    machine = partition.machine
    registry = Registry(
        machine.directory, is_shared=machine.is_shared, is_pod=machine.is_pod
    )
    with home.registry.guard():
        # A pod's chips are under the guard that we have; other chips under their own.
        holders = () if force else _read_holders(registry, home, machine)
        if holders:
            raise DeviceBusyError(
                f"Partition {name} is in use by process {holders[0]}.",
                remedy="Wait until it ends, or force the removal.",
            )
        home.drop(name)
    return partition


def _read_holders(registry: Registry, home: _Home, machine: Machine) -> tuple[int, ...]:
    """The processes that hold a partition's chips."""
    if registry.directory == home.registry.directory:
        return tuple(h.pid for h in registry.read_holders(machine.chips))
    if not registry.directory.exists():
        return ()
    with registry.guard():
        return tuple(h.pid for h in registry.read_holders(machine.chips))


def find_partition_name(environment: Environment) -> str:
    """The partition that the environment names, itself or by a file of V-IPU."""
    if environment.partition or environment.config is None:
        return environment.partition
    path = environment.config
    try:
        return _read_config(path)
    except OSError as error:
        raise DeviceError(
            f"The file of IPUOF_CONFIG_PATH cannot be read: {error.strerror}.",
            where=str(path),
            remedy="Name a file that 'vipu create partition' wrote, or unset it.",
        ) from error


def _read_config(path: Path) -> str:
    """The partition of a configuration file: what it says, or its name says."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        named = json.loads(text)["attributes"]["partition"]
    except (ValueError, LookupError, TypeError):
        found = _CONFIG_NAME.fullmatch(path.name)
        named = found["name"] if found else path.stem
    return str(named)


# -- homes: where partitions are written down


@dataclass(frozen=True)
class _Home:
    """A directory with a file of partitions, and the pod that they are parts of."""

    directory: Path
    pod: CreatedPod | None

    @property
    def pod_name(self) -> str:
        return self.pod.machine.name if self.pod else ""

    @property
    def registry(self) -> Registry:
        is_shared = self.pod is not None and self.pod.machine.is_shared
        is_pod = self.pod is not None
        return Registry(self.directory, is_shared=is_shared, is_pod=is_pod)

    @property
    def path(self) -> Path:
        return self.directory / _FILE

    def read(self) -> list[Partition]:
        """The partitions here; an entry that makes no sense is left out."""
        found = (self._read_one(name, entry) for name, entry in self._entries().items())
        return [partition for partition in found if partition is not None]

    def _entries(self) -> Mapping[str, Any]:
        return read_json(self.path)

    def _read_one(self, name: str, entry: Any) -> Partition | None:
        try:
            chips = tuple(int(chip) for chip in entry["chips"])
            whole = self._whole(name, str(entry["system"]))
            machine = replace(
                whole,
                name=name,
                partition=name,
                chips=tuple(sorted(chips)),
                system=part_of(whole.system, chips),
            )
            return Partition(name, self.pod_name, str(entry["created"]), machine)
        except (LookupError, TypeError, ValueError, TargetError):
            # Left by another version, or its system is no longer known.
            return None

    def _whole(self, name: str, origin: str) -> Machine:
        """The machine that a partition is a part of."""
        if self.pod is not None:
            return self.pod.machine
        return make_machine(name, origin, self.directory / "partitions" / name)

    def choose(
        self, name: str, num_chips: int, environment: Environment
    ) -> tuple[str, tuple[int, ...]]:
        """A system and chips of it that no other partition has."""
        if self.pod is None:
            system = _find_large(load_default_system(environment), num_chips)
            return system.name, tuple(range(num_chips))
        machine = self.pod.machine
        taken = {chip for part in self.read() for chip in part.machine.chips}
        for device in number_devices(machine.system):
            if device.num_chips == num_chips and taken.isdisjoint(device.chip_ids):
                return machine.origin, device.chip_ids
        raise DeviceError(
            f"Pod {self.pod_name} has no {num_chips} chips side by side for partition "
            f"{name}: {machine.system.num_chips - len(taken)} of "
            f"{machine.system.num_chips} are in no partition.",
            remedy="Ask for fewer, remove a partition, or create a larger pod.",
        )

    def add(self, name: str, entry: Mapping[str, object]) -> None:
        self._write({**self._entries(), name: entry})

    def drop(self, name: str) -> None:
        self._write({n: e for n, e in self._entries().items() if n != name})

    def _write(self, entries: Mapping[str, object]) -> None:
        if self.pod is not None and not os.access(self.directory, os.W_OK):
            raise DeviceError(
                f"Pod {self.pod_name} belongs to user {self.pod.user}.",
                remedy="Only who created it can change its partitions.",
            )
        with saying_where(self.directory):
            write_json(self.path, entries)
            if self.pod is not None and self.pod.machine.is_shared:
                self.path.chmod(0o644)


def _list_homes(environment: Environment, pods: Iterable[CreatedPod]) -> list[_Home]:
    own = _Home(find_roots(environment).own, None)
    return [*(_Home(pod.machine.directory, pod) for pod in pods), own]


def _get_home(environment: Environment) -> _Home:
    """Where a new partition is written down: with the pod in force, or without one."""
    pod = find_pod_in_force(environment)
    if pod is not None:
        return _Home(pod.machine.directory, pod)
    root = find_roots(environment).own
    with saying_where(root):
        make_directory(root, root)
    return _Home(root, None)


# -- systems of partitions


def _check_size(num_chips: int) -> None:
    if num_chips < 1 or num_chips & (num_chips - 1):
        raise DeviceError(
            f"A partition cannot have {num_chips} chips.",
            remedy="Ask for a power of two: 1, 2, 4, 8, ...",
        )


def _find_large(system: System, num_chips: int) -> System:
    found = find_larger_system(system, num_chips)
    if found is None:
        raise DeviceError(
            f"No system of {system.chip.name} chips has {num_chips}.",
            remedy="Ask for fewer.",
        )
    return system if system.num_chips >= num_chips else found


def part_of(system: System, chips: Sequence[int]) -> System:
    """Some chips of a system as a system of their own, in the order they join groups.

    The built-in one of that size if there is one, as a Bow Pod16 is a part of a Pod64.
    """
    count = len(chips)
    if count == system.num_chips:
        return system
    # Two halves of a server with a wiring of its own are not two small pods.
    order = _rank(chips) if system.device_order else ()
    for known in list_systems():
        same = (known.chip.name, known.num_chips) == (system.chip.name, count)
        if same and not order:
            return known
    return replace(
        system,
        name=f"{system.name}-{count}",
        aliases=(),
        num_chips=count,
        chips_per_machine=min(count, system.chips_per_machine),
        rack_chips=min(count, system.rack_chips),
        topology="single" if count == 1 else system.topology,
        device_order=order,
    )


def _rank(chips: Sequence[int]) -> tuple[int, ...]:
    ranks = {chip: rank for rank, chip in enumerate(sorted(chips))}
    return tuple(ranks[chip] for chip in chips)
