"""What a function reads that is not to be seen in it: files, clocks, made-up names.

A fingerprint stands for all that code depends on. Here is told, from the names in a
function and its bytecode, when it depends on more than that.
"""

from __future__ import annotations

import dis
import itertools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from popple.session.object_digest import NATIVE

__all__ = ["asks_by_name", "codes_in", "find_call", "find_source", "looks_up"]

# Another thing in every run.
_MODULES = frozenset(
    {
        "datetime",
        "glob",
        "h5py",
        "linecache",
        "random",
        "secrets",
        "shutil",
        "socket",
        "subprocess",
        "tempfile",
        "time",
        "urllib",
        "uuid",
    }
)
# Parts of modules that are otherwise sound.
_PARTS: Mapping[str, frozenset[str]] = {
    "importlib": frozenset({"import_module", "reload"}),
    "numpy": frozenset({"fromfile", "genfromtxt", "load", "loadtxt", "memmap"}),
    "os": frozenset(
        {"getcwd", "getpid", "listdir", "popen", "scandir", "stat", "walk"}
    ),
    "pandas": frozenset({"read_csv", "read_json", "read_parquet", "read_pickle"}),
    "posixpath": frozenset({"exists", "getmtime", "getsize", "isdir", "isfile"}),
    "sys": frozenset({"_getframe", "argv", "modules"}),
    "torch": frozenset({"load"}),
}
_PARTS_OF_BOTH = _PARTS["os"] | _PARTS["posixpath"]
_BUILTINS = frozenset({"__import__", "eval", "exec", "globals", "input", "open"})
_METHODS = frozenset({"open", "read_bytes", "read_text"})
# Ways to ask an object for attributes whose names are made while the code runs.
_LOOKUPS = frozenset(
    {"__dict__", "__getattribute__", "attrgetter", "getattr", "getmembers", "vars"}
)
_CALLABLE = (*NATIVE, types.FunctionType, types.MethodType, type)


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code and that of functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def find_source(value: Any, names: Iterable[str]) -> str | None:
    """Where a global of code that uses these names reads something of this run."""
    home = value.__name__ if isinstance(value, types.ModuleType) else None
    if home is None and isinstance(value, _CALLABLE):
        home = getattr(value, "__module__", None)
        names = (getattr(value, "__name__", ""),)
    if home is None:
        return None
    package = home.partition(".")[0]
    is_random = home == "numpy.random" or (home == "numpy" and "random" in names)
    parts = _PARTS_OF_BOTH if package == "os" else _PARTS.get(package, frozenset())
    if package in _MODULES or is_random or not parts.isdisjoint(names):
        return home
    return None


def find_call(codes: Sequence[types.CodeType], held: Mapping[str, Any]) -> str | None:
    """What code calls to read files or to run texts; `held` are its globals."""
    names = {name for code in codes for name in code.co_names}
    found = sorted(names & _METHODS - held.keys())
    if builtins := names & _BUILTINS - held.keys():
        # Methods may have such a name too, as `eval` of modules has.
        loaded = {name for code in codes for name, _ in _globals_in(code)}
        found += sorted(builtins & loaded)
    return found[0] if found else None


def asks_by_name(codes: Sequence[types.CodeType], name: str) -> bool:
    """Whether code may ask the module of this name for anything: it hands the module
    on, or looks up attributes whose names it makes."""
    loads = [load for code in codes for load in _globals_in(code)]
    used = {n for code in codes for n in code.co_names}
    return (name, "") in loads or looks_up(used)


def looks_up(names: Iterable[str]) -> bool:
    """Whether code with these names may ask objects for attributes by other names."""
    return not _LOOKUPS.isdisjoint(names)


def _globals_in(code: types.CodeType) -> Iterator[tuple[str, str]]:
    """Globals that code loads, each with the attribute it takes of them, or ""."""
    lines = [line for line in dis.get_instructions(code) if line.opname != "CACHE"]
    for line, after in itertools.zip_longest(lines, lines[1:]):
        if line.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            is_attribute = after and after.opname in ("LOAD_ATTR", "LOAD_METHOD")
            yield str(line.argval), str(after.argval) if is_attribute else ""
