"""Command: name, help, arguments and action of a sub-command of `popple`.

In: parsed arguments. Out: an exit status, or work that still has to be done.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

# A command that runs a user's program returns it as a function instead of calling it:
# what goes wrong in there is the program's, and keeps its own traceback.
Outcome: TypeAlias = int | Callable[[], int]


@dataclass(frozen=True)
class Command:
    """One command: its name, one line of help, its arguments and its action."""

    name: str
    summary: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], Outcome]
