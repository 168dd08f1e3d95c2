"""`popple cache`: lists the compiled programs of an executable cache, or removes some.

    popple cache list
    popple cache prune --max-size 2GiB --older-than 30d

The directory is that of --dir, or what POPTORCH_CACHE_DIR, POPART_CACHE_DIR,
POPXL_CACHE_DIR or TF_POPLAR_FLAGS name.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from popple.errors import UsageError
from popple.text_table import render_table
from popple.tools.command import Command
from popple.units import render_bytes

if TYPE_CHECKING:
    from popple.session.cache import CacheEntry

_VARIABLES = ("POPTORCH_CACHE_DIR", "POPART_CACHE_DIR", "POPXL_CACHE_DIR")
_FLAG = "--executable_cache_path="
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="show what is in the cache")
    pruning = actions.add_parser("prune", help="remove what was not used for longest")
    for action, is_pruning in ((listing, False), (pruning, True)):
        action.add_argument("--dir", type=Path, help="the directory of the cache")
        action.set_defaults(is_pruning=is_pruning)
    pruning.add_argument(
        "--max-size",
        metavar="SIZE",
        help="keep at most so much, for example 2GiB or 500MB",
    )
    pruning.add_argument(
        "--older-than",
        metavar="AGE",
        help="remove what was not used for so long, for example 12h or 30d",
    )


def run(arguments: Namespace) -> int:
    """List or prune."""
    from popple.session.cache import ExecutableCache

    cache = ExecutableCache(find_directory(arguments.dir, os.environ))
    if not arguments.is_pruning:
        print(render_entries(cache.entries(), time.time()))
        return 0
    if arguments.max_size is None and arguments.older_than is None:
        raise UsageError(
            "nothing says what to remove.",
            remedy="Give --max-size 2GiB, --older-than 30d, or both.",
        )
    size, age = arguments.max_size, arguments.older_than
    removed = cache.prune(
        None if size is None else parse_size(size),
        None if age is None else parse_age(age),
    )
    freed = sum(entry.size_bytes for entry in removed)
    print(f"Removed {len(removed)} of {cache.directory}: {render_bytes(freed)}.")
    return 0


def find_directory(given: Path | None, environ: Mapping[str, str]) -> Path:
    """The directory that the command line or the environment names."""
    named = [environ.get(name, "") for name in _VARIABLES]
    flags = shlex.split(environ.get("TF_POPLAR_FLAGS", ""))
    named += [f.removeprefix(_FLAG) for f in flags if f.startswith(_FLAG)]
    found = str(given) if given is not None else next(filter(None, named), "")
    if not found:
        raise UsageError(
            "no cache is named.",
            remedy=f"Give --dir, or set {_VARIABLES[0]} as your programs do.",
        )
    if not Path(found).is_dir():
        raise UsageError(
            f"there is no directory {found}.",
            remedy="A cache is made when the first program is kept in it.",
        )
    return Path(found)


def render_entries(entries: list[CacheEntry], now: float) -> str:
    """One line for each compiled program, the one last used first."""
    header = ("file", "program", "framework", "version", "size", "last used")
    rows = [_row(entry, now) for entry in entries]
    total = sum(entry.size_bytes for entry in entries)
    table = render_table(header, rows, ("size",))
    return f"{table}\n{len(entries)} programs, {render_bytes(total)}"


def _row(entry: CacheEntry, now: float) -> tuple[str, ...]:
    described = entry.describe()
    texts = [str(described.get(n, "?")) for n in ("name", "framework", "version")]
    age = render_age(now - entry.used)
    return (entry.path.name, *texts, render_bytes(entry.size_bytes), age)


def render_age(seconds: float) -> str:
    """`5 h ago`: the largest unit of which there are at least two."""
    for letter in ("w", "d", "h", "m"):
        count = int(seconds // _SECONDS[letter])
        if count >= 2:
            return f"{count} {letter} ago"
    return f"{max(0, int(seconds))} s ago"


def parse_size(text: str) -> int:
    """Bytes: `2GiB` is 2 * 2**30, `2GB` is 2 * 10**9."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no size.", remedy="Write it like 2GiB or 500MB.")
    number, unit, is_binary = found.groups()
    power = " kmgt".index(unit.lower() or " ")
    return int(float(number) * (1024 if is_binary else 1000) ** power)


def parse_age(text: str) -> float:
    """Seconds: `12h`, `30d`."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no age.", remedy="Write it like 12h or 30d.")
    number, unit = found.groups()
    return float(number) * _SECONDS[unit.lower()]


COMMAND = Command("cache", "List or prune compiled programs.", add_arguments, run)
