"""Targets: chips and systems as data, read from TOML, and the part a program runs on.

In: a name (`bow-pod16`) or a TOML file that describes a machine, real or not. Out: a
`Target` for planning and simulation. Every built-in constant carries its unit and
where its value was found; `describe` lists them.
"""

from popple.target.library import (
    describe,
    find_larger_system,
    list_chips,
    list_systems,
    load_system,
)
from popple.target.machine import Chip, System
from popple.target.schema import Constant
from popple.target.target import Target, load_target

__all__ = [
    "Chip",
    "Constant",
    "System",
    "Target",
    "describe",
    "find_larger_system",
    "list_chips",
    "list_systems",
    "load_system",
    "load_target",
]
