"""Which machine is in force, and how an elastic one differs from others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from popple.device import (
    Lease,
    Pod,
    create_partition,
    create_pod,
    find_machine,
    list_machines,
)
from popple.errors import DeviceBusyError, DeviceError, TargetError

HOLD = """
import sys
from popple.device import Pod, find_machine
leases = [Pod(find_machine()).acquire(id=int(id)) for id in sys.argv[1:]]
print("held", flush=True)
sys.stdin.read()
"""


class Holders:
    """Other processes that hold devices of the machine in force."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []

    def hold(self, *ids: int) -> int:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, *map(str, ids)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process.pid

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def others() -> Iterator[Holders]:
    holders = Holders()
    yield holders
    holders.end()


def place(lease: Lease) -> tuple[int, int]:
    return lease.machine.copy, lease.device.id


def test_the_default_is_an_elastic_bow_pod16() -> None:
    machine = find_machine()
    assert (machine.name, machine.is_elastic) == ("bow-pod16", True)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("pod4", "pod4"),
        ("bow-pod16", "bow-pod16"),
        ("IPU-POD64", "pod64"),
        ("", "bow-pod16"),
    ],
)
def test_the_kind_of_the_default_machine(
    value: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHCORE_POD_TYPE", value)
    machine = find_machine()
    assert (machine.system.name, machine.is_elastic) == (name, True)


def test_a_kind_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHCORE_POD_TYPE", "pd16")
    with pytest.raises(DeviceError, match=r"GRAPHCORE_POD_TYPE is 'pd16'.*'pod16'"):
        find_machine()


def test_what_goes_before_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHCORE_POD_TYPE", "pod64")
    create_pod("pod16", "common", is_shared=True)
    assert find_machine().name == "common"
    create_pod("pod4", "mine")
    assert find_machine().name == "mine"
    create_partition("p", 2)
    assert find_machine().name == "mine"
    monkeypatch.setenv("IPUOF_VIPU_API_PARTITION_ID", "p")
    assert find_machine().name == "p"
    monkeypatch.setenv("POPPLE_TARGET", "c600x8")
    assert find_machine().name == "c600x8"
    assert find_machine("common").name == "common"
    assert find_machine("bow").name == "bow"


def test_a_target_that_nobody_knows() -> None:
    with pytest.raises(TargetError, match="Unknown system 'bow-pd16'"):
        find_machine("bow-pd16")


def test_a_file_is_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "six.toml").write_text('name = "six"\nbase = "bow-pod4"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    with Pod(find_machine("six.toml")).acquire():
        monkeypatch.chdir("/")
        assert [machine.name for machine in list_machines()] == ["bow-pod16", "six"]


def test_a_larger_machine_where_somebody_asks() -> None:
    assert find_machine(min_chips=64).system.name == "bow-pod64"
    assert find_machine("pod4", min_chips=8).system.name == "pod16"
    create_pod("pod4")
    assert find_machine(min_chips=64).system.name == "pod4"


def test_an_id_that_another_process_holds_gives_another(others: Holders) -> None:
    others.hold(0)
    with Pod(find_machine()).acquire() as lease:
        assert place(lease) == (0, 1)


def test_the_default_machine_never_blocks(others: Holders) -> None:
    first, second = others.hold(30), others.hold(30)
    with Pod(find_machine()).acquire(num_chips=16) as lease:
        assert place(lease) == (2, 30)
        machines = list_machines()
        assert [machine.name for machine in machines] == [
            "bow-pod16",
            "bow-pod16-copy1",
            "bow-pod16-copy2",
        ]
        found = [{h.pid for h in Pod(machine).holders()} for machine in machines]
        assert found[:2] == [{first}, {second}]


def test_a_busy_id_is_had_on_a_copy(others: Holders) -> None:
    others.hold(3)
    with Pod(find_machine()).acquire(id=3) as lease:
        assert place(lease) == (1, 3)


def test_a_process_stays_on_its_copy(others: Holders) -> None:
    others.hold(30)
    pod = Pod(find_machine())
    first = pod.acquire()
    others.end()
    with first, pod.acquire() as second:
        assert (place(first), place(second)) == ((1, 0), (1, 1))


def test_a_copy_whose_rest_others_took_does_not_block(others: Holders) -> None:
    pod = Pod(find_machine())
    with pod.acquire() as first:
        others.hold(*range(1, 16))
        with pod.acquire() as second:
            assert (place(first), place(second)) == ((0, 0), (1, 1))


def test_a_process_sees_as_many_ipus_as_the_machine_has() -> None:
    pod = Pod(find_machine())
    leases = [pod.acquire() for _ in range(16)]
    assert [place(lease) for lease in leases] == [(0, id) for id in range(16)]
    with pytest.raises(DeviceBusyError, match="is held by process"):
        pod.acquire()
    leases.pop().release()
    assert place(pod.acquire()) == (0, 15)


def test_what_a_process_holds_on_a_copy_is_not_free_on_another(
    others: Holders,
) -> None:
    others.hold(0)
    pod = Pod(find_machine())
    with pod.acquire(id=0) as lease:
        assert place(lease) == (1, 0)
        with pytest.raises(DeviceBusyError):
            pod.acquire(id=0)


def test_threads_of_a_process_hold_different_ids() -> None:
    pod = Pod(find_machine())
    with ThreadPoolExecutor(8) as threads:
        leases = list(threads.map(lambda _: pod.acquire(), range(16)))
    assert sorted(map(place, leases)) == [(0, id) for id in range(16)]


@pytest.mark.parametrize("kind", ["target", "pod", "partition"])
def test_every_other_machine_blocks(
    kind: str, others: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "target":
        monkeypatch.setenv("POPPLE_TARGET", "pod4")
    else:
        create_pod("pod16" if kind == "partition" else "pod4")
    if kind == "partition":
        create_partition("p", 4)
        monkeypatch.setenv("IPUOF_VIPU_API_PARTITION_ID", "p")
    pid = others.hold(6)
    with pytest.raises(DeviceBusyError, match=f"process {pid} "):
        Pod(find_machine()).acquire()


def test_one_lease_is_exchanged_for_another() -> None:
    pod = Pod(find_machine("pod4"))
    one = pod.acquire()
    four = pod.acquire(num_chips=4, instead_of=one)
    assert (one.is_held, four.device.id) == (False, 6)
    assert [holder.chip_id for holder in pod.holders()] == [0, 1, 2, 3]


def test_an_exchange_that_fails_keeps_nothing(others: Holders) -> None:
    create_pod("pod4")
    others.hold(3)
    pod = Pod(find_machine())
    one = pod.acquire()
    with pytest.raises(DeviceBusyError):
        pod.acquire(num_chips=4, instead_of=one)
    assert not one.is_held
    assert [holder.chip_id for holder in pod.holders()] == [3]


def test_a_lease_of_the_default_machine_grows(others: Holders) -> None:
    others.hold(1)
    pod = Pod(find_machine())
    one = pod.acquire()
    with pod.acquire(num_chips=2, instead_of=one) as two:
        assert place(two) == (0, 17)
    one = pod.acquire()
    with pod.acquire(num_chips=16, instead_of=one) as all_of_them:
        assert place(all_of_them) == (1, 30)


def test_only_machines_in_use_are_listed() -> None:
    lease = Pod(find_machine("pod4")).acquire()
    create_pod("dss8440", "unused")
    assert [m.name for m in list_machines()] == ["unused", "pod4"]
    lease.release()
    assert [m.name for m in list_machines()] == ["unused"]
