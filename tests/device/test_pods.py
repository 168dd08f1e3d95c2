"""Pods that a user creates, for himself or for all users of a host."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from popple.device import (
    Pod,
    create_partition,
    create_pod,
    find_machine,
    find_pod,
    get_pod,
    list_pods,
    remove_pod,
)
from popple.errors import DeviceBusyError, DeviceError, TargetError


def names() -> list[str]:
    return [pod.machine.name for pod in list_pods()]


def test_a_pod_is_in_force_until_it_is_removed() -> None:
    assert names() == []
    made = create_pod("dss8440")
    assert find_machine() == made.machine
    assert not find_machine().is_elastic
    assert get_pod("dss8440") == made
    remove_pod("dss8440")
    assert find_machine().is_elastic
    assert not made.machine.directory.exists()


def test_ones_own_newest_pod_goes_first() -> None:
    for kind in ("pod4", "pod16"):
        create_pod(kind)
    create_pod("pod64", is_shared=True)
    assert names() == ["pod16", "pod4", "pod64"]


def test_a_name_is_given_once() -> None:
    create_pod("pod4", "mine")
    with pytest.raises(DeviceError, match="There is a pod 'mine' already"):
        create_pod("pod16", "mine")
    assert get_pod("mine").machine.system.name == "pod4"


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "x" * 65, "a b"])
def test_names_that_are_none(name: str) -> None:
    if name:
        with pytest.raises(DeviceError, match="is no name for a pod"):
            create_pod("pod4", name)
    else:
        assert create_pod("pod4", name).machine.name == "pod4"


def test_a_kind_that_nobody_knows() -> None:
    with pytest.raises(TargetError, match="Unknown system"):
        create_pod("pd4")
    assert names() == []


def test_a_pod_that_is_not_there() -> None:
    assert find_pod("mine") is None
    with pytest.raises(DeviceError, match=r"no pod 'mine'\. None was created"):
        remove_pod("mine")
    create_pod("pod4", "mien")
    with pytest.raises(DeviceError, match="Did you mean 'mien'"):
        remove_pod("mine")


def test_a_pod_in_use_stays() -> None:
    create_pod("pod4")
    with (
        Pod(find_machine()).acquire(),
        pytest.raises(DeviceBusyError, match=f"by process {os.getpid()}"),
    ):
        remove_pod("pod4")
    remove_pod("pod4")


def test_a_pod_removed_meanwhile_is_said_to_be() -> None:
    pod = Pod(create_pod("pod4").machine)
    remove_pod("pod4")
    with pytest.raises(DeviceError, match="The pod was removed"):
        pod.acquire()
    assert names() == []
    assert not pod.machine.directory.exists()
    create_pod("pod16", "pod4")
    assert pod.acquire().is_held


def test_a_damaged_pod_is_left_out() -> None:
    directory = create_pod("pod4").machine.directory
    (directory / "pod.json").write_text("{}", "utf-8")
    assert names() == []
    assert find_machine().is_elastic


def test_a_pod_whose_file_has_gone_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('name = "my"\nbase = "bow-pod4"\n', "utf-8")
    create_pod(str(file))
    assert names() == ["my"]
    file.unlink()
    assert names() == []


def test_lost_lock_files_heal() -> None:
    machine = create_pod("pod4").machine
    Pod(machine).acquire(num_chips=4).release()
    for path in machine.directory.glob("chip-*"):
        path.unlink()
    with Pod(machine).acquire(num_chips=4) as lease:
        assert lease.device.id == 6


def test_files_of_a_shared_pod_are_for_everybody() -> None:
    old = os.umask(0o077)
    try:
        machine = create_pod("pod4", is_shared=True).machine
    finally:
        os.umask(old)
    assert _mode(machine.directory) == 0o755
    assert _mode(machine.directory.parent) == 0o1777
    # Nobody but who created the pod can put another file in the place of one.
    assert {_mode(p) for p in machine.directory.glob("*.lock")} == {0o666}
    assert len(list(machine.directory.iterdir())) == 2 + 3 * 4


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- two users

AS_USER = """
import os, pwd, sys, tempfile
from popple.device import *
from popple.errors import DeviceError
from popple.target import list_systems
list_systems()  # another user may not be able to read the files of this tree
tempfile.tempdir = sys.argv[1]
for name in ("POPPLE_STATE", "LOGNAME", "USER", "LNAME", "USERNAME"):
    os.environ.pop(name, None)
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
{body}
"""

ANNE, BERT = 12_345, 12_346


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A directory as /tmp is: everybody may add to it."""
    # Not below pytest's own, into which other users cannot look.
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o1777)
    yield directory
    shutil.rmtree(directory)


def run_as(user: int, body: str, temporary: Path) -> subprocess.Popen[str]:
    script = AS_USER.format(body=body)
    return subprocess.Popen(
        [sys.executable, "-c", script, str(temporary), str(user)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(user: int, body: str, temporary: Path) -> str:
    """What a program of a user prints."""
    out, _ = run_as(user, body, temporary).communicate("")
    return out.strip()


as_root = pytest.mark.skipif(
    sys.platform == "win32" or os.getuid() != 0, reason="only root can be two users"
)


@as_root
def test_two_users_share_a_pod(temporary: Path) -> None:
    answer(ANNE, "create_pod('pod4', 'common', is_shared=True)", temporary)
    hold = """
lease = Pod(find_machine()).acquire(id=4)
print("held", flush=True)
sys.stdin.read()
"""
    with run_as(BERT, hold, temporary) as bert:
        assert bert.stdout is not None
        assert bert.stdout.readline() == "held\n"
        look = """
pod = Pod(find_machine())
print([(h.chip_id, h.pid, h.user) for h in pod.holders()])
with pod.acquire() as lease:
    print(pod.machine.name, lease.device.id)
try:
    pod.acquire(id=0)
except DeviceError as error:
    print(error)
"""
        held, free, busy, *_ = answer(ANNE, look, temporary).splitlines()
        assert held == str([(c, bert.pid, str(BERT)) for c in (0, 1)])
        assert free == "common 2"
        assert f"is held by process {bert.pid} " in busy
        bert.kill()
        bert.wait()
        assert answer(ANNE, "print(Pod(find_machine()).holders())", temporary) == "()"


@as_root
def test_only_the_creator_changes_a_shared_pod(temporary: Path) -> None:
    answer(ANNE, "create_pod('pod16', 'common', is_shared=True)", temporary)
    change = """
for change in (lambda: remove_pod("common"), lambda: create_partition("p", 2)):
    try:
        change()
    except DeviceError as error:
        print(error.what)
"""
    refused = f"Pod common belongs to user {ANNE}."
    assert answer(BERT, change, temporary).splitlines() == [refused] * 2
    answer(ANNE, "create_partition('p', 2)", temporary)
    use = """
machine = find_partition("p").machine
with Pod(machine).acquire(num_chips=2) as lease:
    print(lease.device.chip_ids, lease.machine.chips)
"""
    assert answer(BERT, use, temporary) == "(0, 1) (0, 1)"


@as_root
def test_default_machines_of_two_users_are_apart(temporary: Path) -> None:
    take = """
with Pod(find_machine()).acquire() as lease:
    print(lease.device.id, lease.machine.directory.is_relative_to(sys.argv[1]))
"""
    assert answer(ANNE, take, temporary) == "0 True"
    assert answer(BERT, take, temporary) == "0 True"
    owners = {path.name: path.stat().st_uid for path in temporary.iterdir()}
    assert owners == {f"popple-{ANNE}": ANNE, f"popple-{BERT}": BERT}


def test_partitions_go_with_their_pod() -> None:
    create_pod("pod16")
    create_partition("p", 4)
    remove_pod("pod16")
    create_pod("pod16")
    assert create_partition("p", 4).num_chips == 4
