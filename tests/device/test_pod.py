"""Leases inside one process, and what is said when there is none to have."""

from __future__ import annotations

import errno
import gc
import json
import os
import threading
from datetime import datetime
from pathlib import Path

import pytest

from popple.device import Lease, Pod
from popple.errors import DeviceBusyError, DeviceError
from popple.target import load_system


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(load_system("bow-pod4"), tmp_path / "locks")


def held_chips(pod: Pod) -> list[int]:
    return [holder.chip_id for holder in pod.holders()]


def test_device_by_id(pod: Pod) -> None:
    assert pod.device(5).chip_ids == (2, 3)


@pytest.mark.parametrize("id", [-1, 7, 1000])
def test_an_id_that_does_not_exist(pod: Pod, id: int) -> None:
    with pytest.raises(DeviceError, match="ids of bow-pod4 are 0 to 6"):
        pod.device(id)


def test_find_is_exact(pod: Pod) -> None:
    assert [device.id for device in pod.find(2)] == [4, 5]
    assert pod.find(3) == ()


def test_acquire_takes_the_lowest_free_id(pod: Pod) -> None:
    with pod.acquire() as first, pod.acquire(num_chips=1) as second:
        assert (first.device.id, second.device.id) == (0, 1)
        with pod.acquire(num_chips=2) as pair:
            assert pair.device.id == 5


def test_acquire_by_id(pod: Pod) -> None:
    with pod.acquire(id=3) as lease:
        assert lease.device.chip_ids == (3,)
        assert held_chips(pod) == [3]


def test_a_group_conflicts_with_its_chips(pod: Pod) -> None:
    with (
        pod.acquire(id=4),
        pytest.raises(DeviceBusyError, match=f"is held by process {os.getpid()} "),
    ):
        pod.acquire(id=6)
    assert held_chips(pod) == []


def test_two_pods_of_one_directory_conflict(pod: Pod, tmp_path: Path) -> None:
    other = Pod(load_system("bow-pod4"), tmp_path / "locks")
    with (
        pod.acquire(id=1),
        pytest.raises(DeviceError, match="Device 1 of bow-pod4 is held by process"),
    ):
        other.acquire(id=1)


def test_a_failed_attempt_keeps_nothing(pod: Pod) -> None:
    with pod.acquire(id=3):
        with pytest.raises(DeviceError, match="is held by"):
            pod.acquire(num_chips=4)
        assert held_chips(pod) == [3]


def test_all_devices_of_a_size_busy(pod: Pod) -> None:
    with (
        pod.acquire(id=6),
        pytest.raises(DeviceError, match="Device 4, 5 of bow-pod4 is held by process"),
    ):
        pod.acquire(num_chips=2)


@pytest.mark.parametrize("num_chips", [0, 3, 8])
def test_a_size_that_no_device_has(pod: Pod, num_chips: int) -> None:
    with pytest.raises(DeviceError, match="Ask for one of: 1, 2, 4"):
        pod.acquire(num_chips=num_chips)


def test_id_and_size_that_disagree(pod: Pod) -> None:
    with pytest.raises(DeviceError, match="Device 4 of bow-pod4 has 2 chips, not 4"):
        pod.acquire(num_chips=4, id=4)


def test_released_twice(pod: Pod) -> None:
    lease = pod.acquire()
    lease.release()
    with pytest.raises(DeviceError, match="device 0 was already released"):
        lease.release()


def test_released_inside_its_block(pod: Pod) -> None:
    with pod.acquire() as lease:
        lease.release()
        assert not lease.is_held
    assert held_chips(pod) == []


def test_a_block_that_raises_releases(pod: Pod) -> None:
    with pytest.raises(ZeroDivisionError), pod.acquire():
        raise ZeroDivisionError
    assert held_chips(pod) == []


def test_a_forgotten_lease_is_released(pod: Pod) -> None:
    lease: Lease | None = pod.acquire()
    assert lease is not None
    lease = None
    gc.collect()
    assert held_chips(pod) == []


def test_holders_say_who_and_since_when(pod: Pod) -> None:
    with pod.acquire(id=2):
        (holder,) = pod.holders()
    assert (holder.chip_id, holder.pid) == (2, os.getpid())
    assert holder.command
    assert holder.user
    assert datetime.fromisoformat(holder.since).utcoffset() is not None


def test_a_record_is_json_for_other_tools(pod: Pod, tmp_path: Path) -> None:
    with pod.acquire(id=0):
        record = json.loads((tmp_path / "locks" / "chip-0.json").read_text("utf-8"))
    assert set(record) == {"pid", "command", "user", "since", "chips"}


def test_the_record_of_an_earlier_holder_is_replaced(pod: Pod, tmp_path: Path) -> None:
    pod.holders()
    (tmp_path / "locks" / "chip-0.json").write_text("x" * 10_000, "utf-8")
    with pod.acquire(id=0):
        assert held_chips(pod) == [0]


def test_a_held_chip_without_a_name_in_its_record(pod: Pod, tmp_path: Path) -> None:
    with pod.acquire(id=0):
        (tmp_path / "locks" / "chip-0.json").write_text("[]", "utf-8")
        with pytest.raises(DeviceError, match="does not say by whom"):
            pod.holders()


def test_a_lock_file_that_is_a_link_is_refused(pod: Pod, tmp_path: Path) -> None:
    pod.holders()
    file, lock = tmp_path / "precious", tmp_path / "locks" / "chip-0.lock"
    file.write_text("mine", "utf-8")
    lock.unlink()
    lock.symlink_to(file)
    with pytest.raises(DeviceError, match="cannot be locked here"):
        pod.acquire(id=0)
    assert file.read_text("utf-8") == "mine"


def test_a_lease_released_by_another_thread(pod: Pod) -> None:
    lease = pod.acquire(id=0)
    thread = threading.Thread(target=lease.release)
    thread.start()
    thread.join()
    assert held_chips(pod) == []


def test_a_file_system_without_locks_is_refused(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(DeviceError, match="cannot be locked here"):
        pod.acquire(id=0)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    pod = Pod(load_system("bow"), tmp_path / "file" / "locks")
    with pytest.raises(DeviceError, match="POPPLE_STATE"):
        pod.acquire()
