"""Lists of hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.distributed.hosts import is_local, parse_hosts, read_hostfile
from popple.errors import UsageError


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("host0,host1", "host0 host1"),
        ("host[0-2,4]", "host0 host1 host2 host4"),
        ("a, b[08-10].lab", "a b08.lab b09.lab b10.lab"),
        ("me@10.1.5.10", "me@10.1.5.10"),
    ],
)
def test_lists(text: str, hosts: str) -> None:
    assert parse_hosts(text) == tuple(hosts.split())


@pytest.mark.parametrize("text", ["", "host[0-b]", "-oProxyCommand=x", "a;b", "h[1]]"])
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(UsageError):
        parse_hosts(text)


def test_a_file_has_one_host_a_line(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# two machines\nhost0 slots=4\n\nhost1 # the other\n")
    assert read_hostfile(path) == ("host0", "host1")
    with pytest.raises(UsageError, match="cannot be read"):
        read_hostfile(tmp_path / "none")


def test_which_names_are_this_computer() -> None:
    assert is_local("localhost")
    assert not is_local("host0")
