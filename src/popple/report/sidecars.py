"""Files beside `profile.pop`: debug contexts (`debug.cbor`) and `framework.json`.

`debug.cbor` maps the id of each debug context to its name, parent, module and
source line; `framework.json` names the framework. Files of other producers have
other layouts there: they are left alone and read as empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import cbor2

from popple.errors import ReportError
from popple.report.parts.extras import DebugContext, Framework

DEBUG_FILE = "debug.cbor"
FRAMEWORK_FILE = "framework.json"


def encode_debug(contexts: Sequence[DebugContext]) -> bytes:
    """The bytes of `debug.cbor`."""
    entries = {context.id: _debug_entry(context) for context in contexts}
    return cbor2.dumps(entries)


def _debug_entry(context: DebugContext) -> dict[str, str | int | None]:
    return {
        "name": context.name,
        "parent": context.parent_id,
        "module": context.module,
        "source_line": context.source_line,
    }


def read_debug(path: Path) -> tuple[DebugContext, ...]:
    """The contexts of a `debug.cbor`; none where there is no such file."""
    if not path.is_file():
        return ()
    try:
        entries = cbor2.loads(path.read_bytes())
    except cbor2.CBORDecodeError as error:
        raise _unreadable(path, error) from error
    # Another producer's layout, or a number as the whole file: not damage, only
    # unknown.
    if not isinstance(entries, Mapping):
        return ()
    items = cast(Mapping[Any, Any], entries).items()
    return tuple(_context(key, entry) for key, entry in items if isinstance(key, int))


def _context(number: int, entry: Mapping[str, Any]) -> DebugContext:
    return DebugContext(
        number, entry["name"], entry["parent"], entry["module"], entry["source_line"]
    )


def encode_framework(framework: Framework | None) -> str:
    """The text of `framework.json`."""
    # The file is written without a framework too, so that an older one is replaced.
    known = framework or Framework(name="")
    options = dict(known.options)
    entry = {"name": known.name, "version": known.version, "options": options}
    return json.dumps(entry, indent=2) + "\n"


def read_framework(path: Path) -> Framework | None:
    """The framework of a `framework.json`, None where none is named."""
    if not path.is_file():
        return None
    try:
        entry: Any = json.loads(path.read_bytes())
    except ValueError as error:
        raise _unreadable(path, error) from error
    # Another producer's layout is unknown, not damaged.
    if not isinstance(entry, dict):
        return None
    facts = cast(dict[str, Any], entry)
    if not facts.get("name"):
        return None
    return Framework(facts["name"], facts.get("version", ""), facts.get("options", {}))


def _unreadable(path: Path, error: Exception) -> ReportError:
    return ReportError(
        f"the file cannot be read: {error}.",
        where=str(path),
        remedy="Delete it; the report opens without it.",
    )
