"""Keeps tests off the network, in this process and in the scripts they start.

conftest.py applies `GUARDED_METHODS` to `socket.socket` around every test; a script is
started with `python tests/offline.py script.py args...`, which does the same.
"""

from __future__ import annotations

import ipaddress
import runpy
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


class OutsideConnectionError(Exception):
    """A test tried to reach another machine."""


def is_inside(family: int, address: Any) -> bool:
    """Whether an address as given to `connect` stays on this machine."""
    if family not in (socket.AF_INET, socket.AF_INET6):
        return True
    host = address[0].partition("%")[0]
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guard(method: Callable[[socket.socket, Any], Any]) -> Callable[..., Any]:
    """`connect` or `connect_ex`, but only for addresses on this machine."""

    def guarded(self: socket.socket, address: Any) -> Any:
        if not is_inside(self.family, address):
            raise OutsideConnectionError(f"tests must not reach {address!r}")
        return method(self, address)

    return guarded


GUARDED_METHODS = {
    "connect": guard(socket.socket.connect),
    "connect_ex": guard(socket.socket.connect_ex),
}


def command(script: Path, *arguments: str) -> list[str]:
    """The command line that runs a script off the network."""
    return [sys.executable, __file__, str(script), *arguments]


def main(script: str, *arguments: str) -> None:
    for name, method in GUARDED_METHODS.items():
        setattr(socket.socket, name, method)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
