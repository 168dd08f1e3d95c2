"""Which variables of the environment a piece of code reads, as its bytecode says.

In: code and its globals. Out: the names, and None for each place where the name cannot
be seen: it is made while the code runs, or the whole environment is handed on.
"""

from __future__ import annotations

import dis
import os
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["variables_read"]

_GETTERS = frozenset({"getenv", "getenvb"})
_MAPPINGS = frozenset({"environ", "environb"})
_READERS = _GETTERS | _MAPPINGS
_METHODS = frozenset({"__contains__", "__getitem__", "get", "pop", "setdefault"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_PLAIN_LOADS = _GLOBALS | {"LOAD_CONST", "LOAD_FAST", "LOAD_DEREF"}
# Prepare calls, fill caches, or are there for the debugger.
_NOISE = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"})
_USES = ("BINARY_SUBSCR", "CALL", "DELETE_SUBSCR", "KW_NAMES", "STORE_SUBSCR")


def variables_read(
    code: types.CodeType, held: Mapping[str, Any]
) -> Iterator[str | None]:
    """Names of variables that code asks for; None where it makes the name."""
    if not _may_read(code, held):
        return
    lines = [line for line in dis.get_instructions(code) if line.opname not in _NOISE]
    for index, line in enumerate(lines):
        if line.opname == "IMPORT_FROM" and line.argval in _READERS:
            yield None
        elif (reader := _reader(line, held)) in _MAPPINGS:
            yield _key_in_mapping(lines, index, held)
        elif reader is not None:
            yield _key(lines[index + 1 :], held)


def _may_read(code: types.CodeType, held: Mapping[str, Any]) -> bool:
    """A quick look: most code names nothing of the environment."""
    return any(name in _READERS or _alias(held.get(name)) for name in code.co_names)


def _alias(value: Any) -> str | None:
    """The name in `os` of a global that is one of its readers."""
    return next((n for n in _READERS if getattr(os, n, _alias) is value), None)


def _reader(line: dis.Instruction, held: Mapping[str, Any]) -> str | None:
    if line.opname in _ATTRIBUTES and line.argval in _READERS:
        return str(line.argval)
    return _alias(held.get(line.argval)) if line.opname in _GLOBALS else None


def _key_in_mapping(
    lines: Sequence[dis.Instruction], index: int, held: Mapping[str, Any]
) -> str | None:
    after = lines[index + 1]
    if after.opname == "CONTAINS_OP":
        # `"NAME" in os.environ`: the name was loaded before the module.
        before = index - 1 if lines[index].opname in _GLOBALS else index - 2
        return _text(lines[before], held) if before >= 0 else None
    is_method = after.opname in _ATTRIBUTES and after.argval in _METHODS
    return _key(lines[index + 1 + is_method :], held)


def _key(lines: Sequence[dis.Instruction], held: Mapping[str, Any]) -> str | None:
    """The first argument, if it is a text that is used as it stands."""
    # After it there may be a default, with its keyword.
    use = next(line for line in lines[1:] if line.opname not in _PLAIN_LOADS)
    is_used = use.opname.startswith(_USES) or use.argrepr == "[]"
    return _text(lines[0], held) if is_used else None


def _text(line: dis.Instruction, held: Mapping[str, Any]) -> str | None:
    if line.opname == "LOAD_CONST":
        found = line.argval
    else:
        found = held.get(line.argval) if line.opname in _GLOBALS else None
    return found if isinstance(found, str) else None
