"""Hosts with networks of their own: network namespaces stand for computers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distributed.jobs import POPRUN, instances

JOB = Path(__file__).parents[1] / "popdist" / "training_job.py"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Two hosts behind a bridge, each with a network of its own."""
    name = f"pop{os.getpid() % 10000}"
    # Addresses of a block that is reserved for documentation: nobody uses it.
    addresses = [f"198.51.100.{number}" for number in (11, 12)]
    try:
        ip("link", "add", name, "type", "bridge")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no network namespaces here: they need root and ip(8)")
    try:
        ip("addr", "add", "198.51.100.1/24", "dev", name)
        ip("link", "set", name, "up")
        for number, address in enumerate(addresses):
            connect(f"{name}n{number}", name, address)
        yield addresses
    finally:
        ip("link", "del", name)
        for number in range(len(addresses)):
            ip("netns", "del", f"{name}n{number}")


def connect(space: str, bridge: str, address: str) -> None:
    inside, outside = f"{space}i", f"{space}o"
    ip("netns", "add", space)
    ip("link", "add", outside, "type", "veth", "peer", "name", inside)
    ip("link", "set", outside, "master", bridge, "up")
    ip("link", "set", inside, "netns", space)
    ip("-n", space, "addr", "add", f"{address}/24", "dev", inside)
    ip("-n", space, "link", "set", inside, "up")
    ip("-n", space, "link", "set", "lo", "up")


# Stands for ssh: finds the namespace with the address and runs the command there.
SSH = """#!/bin/sh
shift 2
for space in $(ip netns list | cut -d' ' -f1); do
    if ip -n $space -4 addr | grep -q "$1/"; then
        exec ip netns exec $space sh -c "$2"
    fi
done
exit 255
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_hosts_train_together(hosts: list[str], tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    host = f"--host={','.join(hosts)}"
    words = [*POPRUN, *instances(2, 4), host, sys.executable, str(JOB), str(tmp_path)]
    environ = {**os.environ, "PATH": path}
    done = subprocess.run(words, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = (tmp_path / f"{n}.json" for n in range(2))
    weights = '"weights": '
    assert weights in first.read_text()
    assert (
        first.read_text().partition('"losses"')[0]
        == (second.read_text().partition('"losses"')[0])
    )
