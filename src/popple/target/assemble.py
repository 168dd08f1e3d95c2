"""Assemble a System from a TOML document; constants left out come from its base.

In: a `Document` and a `Catalogue` of what is built in. Out: a `System`. A file is

- a chip file: constants of a chip, complete or with a `base`; it becomes the base
  system, or the one-chip system of its architecture, with that chip in it; or
- a system file: constants of a system, complete or with a `base`, and a `chip`, which
  is a name, or a table laid over the chip of its `base` or of the base system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from popple.errors import TargetError
from popple.target.document import Document, read_constants, verify_keys
from popple.target.machine import Chip, System
from popple.target.schema import Scalar, Sources, constants_of, specs_of

Part = TypeVar("Part", Chip, System)

_CHIP_WORDS = ("name", "base")
_SYSTEM_WORDS = ("name", "base", "chip", "aliases", "device_order")
_ARCHITECTURE_SYSTEMS: Mapping[str, str] = {
    "ipu1": "gc2",
    "ipu2": "bow",
    "ipu21": "c600",
}


@dataclass(frozen=True)
class Catalogue:
    """The systems and chips a file may refer to, each by name."""

    get_system: Callable[[str], System]
    get_chip: Callable[[str], Chip]


def assemble_system(document: Document, catalogue: Catalogue) -> System:
    """The system that a chip file or a system file describes."""
    if _is_chip_document(document):
        return _assemble_around_chip(document, catalogue)
    _refuse_chip_keys(document)
    verify_keys(document, (*specs_of(System), *_SYSTEM_WORDS))
    base = _find_base(document, catalogue)
    values, sources = _read_whole(document, System, base)
    return _construct(
        document,
        System,
        **values,
        name=_name_of(document),
        chip=_assemble_inner_chip(document, base, catalogue),
        aliases=document.find_list("aliases", str),
        device_order=_get_device_order(document, base, values),
        sources=sources,
    )


def assemble_chip(document: Document, base: Chip | None) -> Chip:
    """The chip that a table describes, laid over `base`."""
    # A misspelt system file looks like a chip file, so its keys are suggested too.
    hints = () if document.section else specs_of(System)
    verify_keys(document, (*specs_of(Chip), *_CHIP_WORDS), hints)
    values, sources = _read_whole(document, Chip, base)
    name = _name_of(document)
    return _construct(document, Chip, **values, name=name, sources=sources)


def _is_chip_document(document: Document) -> bool:
    return {*specs_of(System), "chip"}.isdisjoint(document.table)


def _assemble_around_chip(document: Document, catalogue: Catalogue) -> System:
    base = _find_base(document, catalogue)
    chip = assemble_chip(document, base.chip if base else None)
    around = base or catalogue.get_system(_ARCHITECTURE_SYSTEMS[chip.architecture])
    return replace(around, name=chip.name, chip=chip, aliases=())


def _assemble_inner_chip(
    document: Document, base: System | None, catalogue: Catalogue
) -> Chip:
    raw = document.table.get("chip")
    if isinstance(raw, str):
        return _look_up(document, "chip", raw, catalogue.get_chip)
    if raw is not None:
        inner = document.open_section("chip")
        inner_base = _find_base(inner, catalogue) or base
        return assemble_chip(inner, inner_base.chip if inner_base else None)
    if base is None:
        raise TargetError(
            "The system has no chip.",
            where=document.path,
            remedy='Add chip = "bow", a [chip] table, or base = "bow-pod16".',
        )
    return base.chip


def _find_base(document: Document, catalogue: Catalogue) -> System | None:
    """The system under `base`; the name of a chip means one chip of its kind."""
    name = document.find_text("base")
    if name is None:
        return None
    return _look_up(document, "base", name, catalogue.get_system)


def _look_up(
    document: Document, key: str, name: str, get: Callable[[str], Part]
) -> Part:
    try:
        return get(name)
    except TargetError as error:
        raise document.refuse(key, error.what, error.remedy) from error


def _read_whole(
    document: Document, part_class: type, base: Chip | System | None
) -> tuple[dict[str, Any], Sources]:
    """All constants of a part: the document's own, the rest from its base."""
    values, sources = read_constants(document, part_class)
    if base is None:
        _refuse_missing(document, part_class, values)
        return values, tuple(sources.items())
    whole = {**constants_of(base), **values}
    return whole, tuple({**dict(base.sources), **sources}.items())


def _refuse_missing(
    document: Document, part_class: type, values: Mapping[str, Scalar]
) -> None:
    missing = [key for key in specs_of(part_class) if key not in values]
    if missing:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        section = f": [{document.section}]" if document.section else ""
        raise TargetError(
            f"Missing {part_class.__name__.lower()} constants: {shown}.",
            where=document.path + section,
            remedy='Add them, or take the rest from a known one: base = "bow".',
        )


def _refuse_chip_keys(document: Document) -> None:
    chip_keys = specs_of(Chip)
    for key in document.table:
        if key in chip_keys:
            what = f"{key} is a constant of a chip, and this file describes a system."
            raise document.refuse(key, what, "Put it into a [chip] table.")


def _get_device_order(
    document: Document, base: System | None, values: Mapping[str, Scalar]
) -> tuple[object, ...]:
    """The order given, or the base's if it lists as many chips."""
    given = document.find_list("device_order", int)
    inherited = base.device_order if base else ()
    return given or (inherited if len(inherited) == values["num_chips"] else ())


def _name_of(document: Document) -> str:
    return document.find_text("name") or Path(document.path).stem


def _construct(
    document: Document, part_class: Callable[..., Part], **arguments: object
) -> Part:
    """Construct a part; what its own rules refuse is reported with the file."""
    try:
        return part_class(**arguments)
    except TargetError as error:
        where = f"{document.path}: {error.where}" if error.where else document.path
        raise TargetError(error.what, where=where, remedy=error.remedy) from error
