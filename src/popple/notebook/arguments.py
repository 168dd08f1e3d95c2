"""Argument parsing that works inside Jupyter.

A kernel's command line is Jupyter's (`-f /run/kernel-1.json`), so a program that parses
it stops with "unrecognized arguments". Here a parser that is given no list takes the
defaults when it runs in a kernel, and the command line otherwise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Programs that start kernels; the first word of a kernel's command line is theirs.
_LAUNCHERS = ("ipykernel_launcher.py", "colab_kernel_launcher.py")


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules and Path(sys.argv[0]).name in _LAUNCHERS


class ArgumentParser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` whose defaults hold in a notebook.

    A list that is given is parsed as usual: `parser.parse_args(["--epochs", "2"])`.
    """

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """What `parse_args` is made of: known arguments, and the rest."""
        chosen = [] if args is None and is_notebook() else args
        return super().parse_known_args(chosen, namespace)
