"""`run_command_fail_explicitly`: run a command; its error shows what it wrote."""

from __future__ import annotations

import subprocess
from typing import Any

__all__ = [
    "DEFAULT_PROCESS_TIMEOUT_SECONDS",
    "CalledProcessError",
    "run_command_fail_explicitly",
]

DEFAULT_PROCESS_TIMEOUT_SECONDS = 40 * 60


class CalledProcessError(subprocess.CalledProcessError):
    """A command failed; the text has all that it wrote."""

    def __str__(self) -> str:
        return "\n".join([super().__str__(), str(self.stdout), str(self.stderr)])


def run_command_fail_explicitly(
    command: str | list[str],
    cwd: str = ".",
    *,
    suppress_warnings: bool = False,
    **kwargs: Any,
) -> str:
    """What a command writes to stdout and stderr, or to stdout only.

    `suppress_warnings` leaves stderr out. More arguments are those of
    `subprocess.check_output`. A text with spaces is run by the shell.
    """
    options: dict[str, Any] = {
        "shell": isinstance(command, str) and " " in command,
        "stderr": subprocess.STDOUT,
        "timeout": DEFAULT_PROCESS_TIMEOUT_SECONDS,
        "text": True,
        **kwargs,
    }
    if suppress_warnings:
        options["stderr"] = subprocess.PIPE
    try:
        return subprocess.check_output(command, cwd=cwd, **options)
    except subprocess.CalledProcessError as error:
        raise CalledProcessError(
            error.returncode, command, error.stdout, error.stderr
        ) from error
