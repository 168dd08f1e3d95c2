"""Faults to simulate on a virtual device, as the JSON text of GCDA_OPTIONS asks.

In: the text of the environment variable. Out: `DeviceOptions` with the faults in it,
and a `FaultInjector` that says, operation by operation, which of them act. Tests of
memory, exchange and links apply what it says to the bytes they move.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, cast

from popple.errors import UsageError, suggest

FAULT_KINDS = ("memory", "exchange", "link", "host", "soc")
# Names of the error register that the manual's example shows.
SOC_ERRORS = ("IPUSOFTERR",)

_PREFIX = "simulateSOCError."
_FLAGS: Mapping[str, bool] = {
    "enableMonitoring": False,
    "monitorUtilisation": True,
    "discoverUSBDevices": True,
    "forceHSPPosted": False,
    _PREFIX + "rearmOnReset": False,
}
_KNOWN = (*_FLAGS, "configFile", _PREFIX + "errorList", _PREFIX + "triggerCount")

Table: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class Fault:
    """One fault: its kind and where on the device it is.

    `ipu` counts the chips of the device under test from 0. A memory cell has one bit
    that is always `stuck`; traffic into a tile or over a link has that bit inverted.
    `name` is the name of a fault of the whole chip (kind "soc").
    """

    kind: str
    ipu: int = 0
    tile: int = 0
    address: int = 0
    bit: int = 0
    stuck: int = 1
    link: int = 0
    name: str = ""


@dataclass(frozen=True)
class DeviceOptions:
    """What GCDA_OPTIONS says.

    Each fault acts on `trigger_count` operations that meet it; `rearm_on_reset`: a
    reset of the device lets it act as often again.
    """

    faults: tuple[Fault, ...] = ()
    trigger_count: int = 0
    rearm_on_reset: bool = False
    enable_monitoring: bool = False
    monitor_utilisation: bool = True
    force_posted_sync: bool = False


class FaultInjector:
    """Which faults act on the next operation; counts how often each has acted."""

    def __init__(self, options: DeviceOptions) -> None:
        self._options = options
        self._left: list[int] = []
        self._arm()

    def strike(self, kind: str, ipu: int | None = None) -> tuple[Fault, ...]:
        """The faults of a kind that act on this operation, on all chips or on one."""
        found: list[Fault] = []
        for index, fault in enumerate(self._options.faults):
            is_here = fault.kind == kind and ipu in (None, fault.ipu)
            if is_here and self._left[index]:
                self._left[index] -= 1
                found.append(fault)
        return tuple(found)

    def reset(self) -> None:
        """The device was reset; faults act again if that was asked for."""
        if self._options.rearm_on_reset:
            self._arm()

    def _arm(self) -> None:
        self._left = [self._options.trigger_count] * len(self._options.faults)


def parse_device_options(text: str) -> DeviceOptions:
    """Read the JSON of GCDA_OPTIONS; an empty text asks for nothing."""
    if not text.strip():
        return DeviceOptions()
    table = _parse_table(text)
    for key in table:
        if key not in _KNOWN:
            raise _refuse(f"unknown option {key!r}.", suggest(key, _KNOWN))
    if "configFile" in table:
        what = "configFile remaps IPUs, which virtual devices cannot do."
        raise _refuse(what, "Create a partition instead: vipu create partition.")
    flags = {key: _read_flag(table, key) for key in _FLAGS}
    faults = _read_faults(table.get(_PREFIX + "errorList"))
    return DeviceOptions(
        faults,
        _read_count(table, bool(faults)),
        flags[_PREFIX + "rearmOnReset"],
        flags["enableMonitoring"],
        flags["monitorUtilisation"],
        flags["forceHSPPosted"],
    )


def _parse_table(text: str) -> Table:
    try:
        table: object = json.loads(text)
    except ValueError as error:
        raise _refuse(f"not JSON: {error}.", _EXAMPLE) from error
    if not isinstance(table, dict):
        raise _refuse("not a JSON object.", _EXAMPLE)
    return cast("Table", table)


def _read_flag(table: Table, key: str) -> bool:
    # The manual writes booleans both as true and as "true".
    value = table.get(key, _FLAGS[key])
    words: Mapping[object, bool] = {True: True, False: False}
    if isinstance(value, str):
        words = {"true": True, "false": False}
    if not isinstance(value, bool | str) or value not in words:
        raise _refuse(f"{key} is {value!r}.", "Use true or false.")
    return words[value]


def _read_count(table: Table, is_needed: bool) -> int:
    key = _PREFIX + "triggerCount"
    if key not in table:
        if is_needed:
            what = f"{_PREFIX}errorList needs {key}."
            raise _refuse(what, f'Add "{key}": 1 for a fault that acts once.')
        return 0
    try:
        count = int(str(table[key]))
    except ValueError:
        count = -1
    if count < 0:
        raise _refuse(f"{key} is {table[key]!r}.", "Use a whole number from 0 on.")
    return count


def _read_faults(raw: object) -> tuple[Fault, ...]:
    """A list of objects and names, or names in one text, separated by commas."""
    if raw is None:
        return ()
    entries: Iterable[object]
    if isinstance(raw, str):
        entries = [part.strip() for part in raw.split(",") if part.strip()]
    elif isinstance(raw, list):
        entries = cast("list[object]", raw)
    else:
        raise _refuse(f"{_PREFIX}errorList is {raw!r}.", _EXAMPLE)
    return tuple(_read_fault(entry) for entry in entries)


def _read_fault(entry: object) -> Fault:
    if isinstance(entry, str):
        return _read_named_fault(entry)
    if not isinstance(entry, dict):
        raise _refuse(f"fault {entry!r} is neither a name nor an object.", _EXAMPLE)
    table = dict(cast("Table", entry))
    kind = table.pop("type", None)
    if kind not in FAULT_KINDS[:-1]:
        what = f"a fault has the type {kind!r}."
        raise _refuse(what, suggest(str(kind), FAULT_KINDS[:-1]))
    known = [f.name for f in fields(Fault) if f.name not in ("kind", "name")]
    for key, value in table.items():
        if key not in known:
            raise _refuse(f"a {kind} fault has no {key!r}.", suggest(key, known))
        if type(value) is not int or value < 0:
            raise _refuse(f"{key} of a {kind} fault is {value!r}.", "Use 0, 1, ...")
    return replace(Fault(str(kind)), **cast("dict[str, Any]", table))


def _read_named_fault(name: str) -> Fault:
    if name in SOC_ERRORS:
        return Fault("soc", name=name)
    if name in FAULT_KINDS[:-1]:
        return Fault(name)
    what = f"unknown fault {name!r}."
    raise _refuse(what, suggest(name, (*SOC_ERRORS, *FAULT_KINDS[:-1])))


def _refuse(what: str, remedy: str) -> UsageError:
    return UsageError(what, where="GCDA_OPTIONS", remedy=remedy)


_EXAMPLE = (
    'For example: {"simulateSOCError.errorList": [{"type": "memory", "tile": 17}], '
    '"simulateSOCError.triggerCount": 1}.'
)
