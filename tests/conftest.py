"""What holds for every test: no network, this tree's code, repeatable examples."""

from __future__ import annotations

import os
import signal
import socket

import hypothesis
import pytest

from tensorflow_ipu import boot
from tests.offline import GUARDED_METHODS
from tests.sources import SRC

# Python's start does this where Popple is installed.
boot.install()

# A run in the background ignores Ctrl-C, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that draws new examples in every run fails when nobody touched anything;
# a deadline measures the machine, not the code.
hypothesis.settings.register_profile("popple", derandomize=True, deadline=None)
hypothesis.settings.load_profile("popple")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to other machines fail; loopback and unix sockets work."""
    for name, method in GUARDED_METHODS.items():
        monkeypatch.setattr(socket.socket, name, method)


@pytest.fixture(autouse=True)
def _own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that a test starts import this tree, wherever they run."""
    monkeypatch.setenv("PYTHONPATH", str(SRC), prepend=os.pathsep)
