"""The guard against network use: what it lets through and what it refuses."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from tests import offline


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.8.9.1"])
def test_loopback_is_inside(host: str) -> None:
    assert offline.is_inside(socket.AF_INET, (host, 80))


def test_loopback_of_version_6_is_inside() -> None:
    assert offline.is_inside(socket.AF_INET6, ("::1", 80, 0, 0))


@pytest.mark.parametrize("host", ["192.0.2.1", "example.org", "10.0.0.1"])
def test_other_machines_are_outside(host: str) -> None:
    assert not offline.is_inside(socket.AF_INET, (host, 80))


def test_connecting_to_loopback_works() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        assert client.getpeername() == server.getsockname()


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_connecting_elsewhere_is_refused(method: str) -> None:
    # 192.0.2.0/24 is reserved for documentation: nobody answers there.
    with (
        socket.socket() as client,
        pytest.raises(offline.OutsideConnectionError, match=r"192\.0\.2\.1"),
    ):
        getattr(client, method)(("192.0.2.1", 80))


def test_scripts_are_refused_too(tmp_path: Path) -> None:
    script = tmp_path / "phone_home.py"
    script.write_text("import socket\nsocket.socket().connect(('192.0.2.1', 80))\n")
    done = subprocess.run(offline.command(script), capture_output=True, text=True)
    assert done.returncode == 1
    assert "OutsideConnectionError" in done.stderr
