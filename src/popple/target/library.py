"""The built-in chips and systems, and the files of users, by name or path.

In: a name such as `bow-pod16`, or the path of a `.toml` file. Out: a `System`. The
built-in files lie in `data/`; they are read once per process.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path

from popple.errors import TargetError, suggest
from popple.target.assemble import Catalogue, assemble_chip, assemble_system
from popple.target.document import Document, parse_document, read_document
from popple.target.machine import Chip, System
from popple.target.schema import Constant, describe_part

_PACKAGE = "popple.target"


def load_system(name_or_path: str | Path) -> System:
    """The built-in system of that name, or the one a `.toml` file describes.

    Names are free in case, hyphens and a leading `ipu-`: `IPU-POD16` is `pod16`. The
    name of a chip is a system of one chip.
    """
    if str(name_or_path).lower().endswith(".toml"):
        return assemble_system(read_document(Path(name_or_path)), _catalogue())
    return _get_builtin_system(str(name_or_path))


def list_systems() -> tuple[System, ...]:
    """The built-in systems, by chip and then by size."""
    systems = (_load_builtin_system(name) for name in _list_names("systems"))
    return tuple(sorted(systems, key=lambda s: (s.chip.name, s.num_chips, s.name)))


def list_chips() -> tuple[Chip, ...]:
    """The built-in chips, by name."""
    return tuple(_load_builtin_chip(name) for name in _list_names("chips"))


def describe(name_or_path: str | Path) -> tuple[Constant, ...]:
    """Every constant of a system and of its chip, with unit and source."""
    system = load_system(name_or_path)
    chip = system.chip
    return (
        *describe_part(system, f"system {system.name}", system.sources),
        *describe_part(chip, f"chip {chip.name}", chip.sources),
    )


def find_larger_system(system: System, num_chips: int) -> System | None:
    """The smallest built-in system with that kind of chip and at least `num_chips`."""
    family = (other for other in list_systems() if other.chip.name == system.chip.name)
    fitting = (other for other in family if other.num_chips >= num_chips)
    return min(fitting, key=lambda other: other.num_chips, default=None)


def _catalogue() -> Catalogue:
    return Catalogue(_get_builtin_system, _get_builtin_chip)


def _get_builtin_system(name: str) -> System:
    known = _index_names()
    canonical = _canonicalise(name)
    if canonical not in known:
        systems = _list_names("systems")
        raise TargetError(
            f"Unknown system {name!r}.",
            remedy=suggest(name.lower(), systems)
            + " A path that ends in .toml names a file of your own.",
        )
    return _load_builtin_system(known[canonical])


def _get_builtin_chip(name: str) -> Chip:
    names = _list_names("chips")
    if name.lower() not in names:
        raise TargetError(
            f"Unknown chip {name!r}.", remedy=suggest(name.lower(), names)
        )
    return _load_builtin_chip(name.lower())


@cache
def _index_names() -> dict[str, str]:
    """Canonical forms of all names and aliases, each with the name of its file."""
    systems = [_load_builtin_system(name) for name in _list_names("systems")]
    pairs = [(alias, s.name) for s in systems for alias in (*s.aliases, s.name)]
    return {_canonicalise(alias): name for alias, name in pairs}


def _canonicalise(name: str) -> str:
    """`IPU-POD_16`, `ipu-pod16` and `pod16` are one; `ipu2` stays a name."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return re.sub(r"^ipu(?=[a-z])", "", plain)


@cache
def _load_builtin_system(name: str) -> System:
    # A base is looked up by the name of its file: the index of aliases needs all
    # systems, and so cannot be used while they are being loaded.
    files = Catalogue(_load_builtin_system, _load_builtin_chip)
    return assemble_system(_read_builtin("systems", name), files)


@cache
def _load_builtin_chip(name: str) -> Chip:
    return assemble_chip(_read_builtin("chips", name), None)


def _read_builtin(folder: str, name: str) -> Document:
    file = resources.files(_PACKAGE) / "data" / folder / f"{name}.toml"
    path = f"data/{folder}/{name}.toml"
    return parse_document(file.read_text(encoding="utf-8"), path, strict=True)


@cache
def _list_names(folder: str) -> tuple[str, ...]:
    entries = (resources.files(_PACKAGE) / "data" / folder).iterdir()
    names = [e.name.removesuffix(".toml") for e in entries if e.name.endswith(".toml")]
    return tuple(sorted(names))
