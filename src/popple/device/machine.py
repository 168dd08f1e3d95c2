"""Machine: what programs attach to: a system, and the directory of its locks.

Three kinds: the *default machine*, which is elastic; a machine that a target names,
which is exclusive; and pods with their partitions (`pods`, `partitions`). In: names.
Out: `Machine`s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from popple.device.environment import Environment
from popple.device.state import Roots, make_directory, read_json, write_json
from popple.errors import DeviceError, TargetError
from popple.target import System, find_larger_system, load_system

# What `popple.session.settings` models by default; nothing is imported from there.
_DEFAULT_KIND = "bow-pod16"
_DESCRIPTION = "machine.json"


@dataclass(frozen=True)
class Machine:
    """A system that programs attach to, and where its locks are.

    `chips` are the physical chips, in the order of the ids that programs see: those of
    a partition are some of its pod's. An *elastic* machine never blocks: if what a
    program wants is held by other programs there, it gets it on a further `copy`.
    `origin` is what `load_system` made the system from.
    """

    name: str
    system: System
    origin: str
    directory: Path
    chips: tuple[int, ...]
    is_elastic: bool = False
    is_shared: bool = False
    is_pod: bool = False
    partition: str = ""
    copy: int = 0

    def at_copy(self, copy: int) -> Machine:
        """A further machine of the same kind, beside this elastic one."""
        name = f"{self.system.name}-copy{copy}" if copy else self.system.name
        directory = self.directory.parent / str(copy)
        return replace(self, name=name, directory=directory, copy=copy)

    def without_copies(self) -> Machine:
        """This machine for those who mean this one: what others hold is not free."""
        return replace(self, is_elastic=False)


def make_machine(name: str, origin: str, directory: Path) -> Machine:
    """An exclusive machine with all chips of a system."""
    system = load_system(origin)
    return Machine(name, system, origin, directory, tuple(range(system.num_chips)))


def named_machine(target: str, roots: Roots, min_chips: int = 0) -> Machine:
    """The exclusive machine of a target, the name of a system or a TOML file."""
    found = load_system(target)
    system = _enlarge(found, min_chips)
    origin = _absolute(target) if system is found else system.name
    return make_machine(system.name, origin, named_directory(system, roots))


def named_directory(system: System, roots: Roots) -> Path:
    """Where the locks of the exclusive machine of a system are."""
    return roots.own / "machines" / "named" / system.name


def default_machine(
    environment: Environment, roots: Roots, min_chips: int = 0
) -> Machine:
    """The elastic machine of programs that name none."""
    system = _enlarge(load_default_system(environment), min_chips)
    directory = roots.own / "machines" / "default" / system.name / "0"
    machine = make_machine(system.name, system.name, directory)
    return replace(machine, is_elastic=True)


def load_default_system(environment: Environment) -> System:
    """The kind of the default machine: GRAPHCORE_POD_TYPE, or a Bow Pod16."""
    kind = environment.pod_type or _DEFAULT_KIND
    try:
        return load_system(kind)
    except TargetError as error:
        raise DeviceError(
            f"GRAPHCORE_POD_TYPE is {kind!r}, which is no machine that Popple knows.",
            remedy=error.remedy,
        ) from error


def describe_machine(machine: Machine, roots: Roots) -> None:
    """Leave a description beside the locks, from which others know the machine."""
    if machine.is_pod:
        return  # a pod has had one since it was created
    is_inside = machine.directory.is_relative_to(roots.own)
    make_directory(machine.directory, roots.own if is_inside else machine.directory)
    path = machine.directory / _DESCRIPTION
    content = {"name": machine.name, "system": machine.origin, "copy": machine.copy}
    if dict(read_json(path)) != content:
        write_json(path, content)


def list_described(roots: Roots) -> tuple[Machine, ...]:
    """The machines of this user that were ever attached to, but for pods."""
    paths = sorted((roots.own / "machines").glob(f"**/{_DESCRIPTION}"))
    return tuple(m for m in map(_read_description, paths) if m is not None)


def _read_description(path: Path) -> Machine | None:
    found = read_json(path)
    try:
        machine = make_machine(found["name"], found["system"], path.parent)
        return replace(machine, copy=int(found["copy"]))
    except (LookupError, TypeError, ValueError, TargetError):
        # Left by another version, or its TOML file has gone.
        return None


def _enlarge(system: System, min_chips: int) -> System:
    if min_chips <= system.num_chips:
        return system
    return find_larger_system(system, min_chips) or system


def _absolute(origin: str) -> str:
    """A path that holds in any directory; names stay."""
    is_file = origin.lower().endswith(".toml")
    return str(Path(origin).absolute()) if is_file else origin
