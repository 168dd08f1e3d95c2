"""Partitions: chips of a pod under a name, seen as a system of their own."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from popple.device import (
    Pod,
    create_partition,
    create_pod,
    find_machine,
    find_partition,
    list_machines,
    list_partitions,
    remove_partition,
    remove_pod,
)
from popple.errors import DeviceBusyError, DeviceError
from tests.sources import ROOT


def chips(name: str) -> tuple[int, ...]:
    found = find_partition(name)
    assert found is not None
    return found.machine.chips


def test_partitions_of_a_pod_share_no_chip() -> None:
    create_pod("pod16")
    for name, size in (("a", 4), ("b", 2), ("c", 8), ("d", 1)):
        create_partition(name, size)
    assert chips("a") == (0, 1, 2, 3)
    assert chips("b") == (4, 5)
    assert chips("c") == tuple(range(8, 16))
    assert chips("d") == (6,)


def test_a_partition_has_ids_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    create_pod("pod16")
    create_partition("a", 4)
    create_partition("b", 4)
    monkeypatch.setenv("IPUOF_VIPU_API_PARTITION_ID", "b")
    pod = Pod(find_machine())
    assert (pod.system.num_chips, len(pod.devices)) == (4, 7)
    with pod.acquire(num_chips=2) as lease:
        assert lease.device.chip_ids == (0, 1)
        assert [holder.chip_id for holder in pod.holders()] == [0, 1]
        whole = Pod(find_machine("pod16"))
        assert [holder.chip_id for holder in whole.holders()] == [4, 5]
        with pytest.raises(DeviceBusyError):
            whole.acquire(id=4)


def test_partitions_of_a_dss8440_keep_its_wiring() -> None:
    create_pod("dss8440")
    create_partition("p", 4)
    found = find_partition("p")
    assert found is not None
    assert found.machine.chips == (4, 5, 6, 7)
    # Its pairs are 5 with 7 and 4 with 6, by the ids of the partition 1, 3 and 0, 2.
    pod = Pod(found.machine)
    assert [set(pod.device(id).chip_ids) for id in (4, 5)] == [{1, 3}, {0, 2}]


@pytest.mark.parametrize("size", [0, -1, 3, 12])
def test_sizes_that_are_no_power_of_two(size: int) -> None:
    with pytest.raises(DeviceError, match="power of two"):
        create_partition("p", size)


def test_a_pod_without_room() -> None:
    create_pod("pod4")
    create_partition("a", 1)
    with pytest.raises(DeviceError, match=r"no 4 chips side by side.* 3 of 4 are"):
        create_partition("b", 4)
    with pytest.raises(DeviceError, match="no 8 chips"):
        create_partition("b", 8)
    remove_partition("a")
    assert create_partition("b", 4).num_chips == 4


def test_a_name_is_given_once() -> None:
    create_partition("p", 2)
    with pytest.raises(DeviceError, match="There is a partition 'p' already"):
        create_partition("p", 4)
    with pytest.raises(DeviceError, match="is no name for a partition"):
        create_partition("../p", 4)


def test_without_a_pod_a_partition_has_a_machine_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = create_partition("a", 64), create_partition("b", 64)
    assert first.machine.chips == second.machine.chips == tuple(range(64))
    assert first.machine.system.name == "bow-pod64"
    with Pod(first.machine).acquire(num_chips=64):
        assert [m.name for m in list_machines()] == ["bow-pod16", "a"]
        assert Pod(second.machine).acquire(num_chips=64).is_held
        with pytest.raises(DeviceBusyError):
            Pod(first.machine).acquire()
    monkeypatch.setenv("GRAPHCORE_POD_TYPE", "pod4")
    assert create_partition("c", 2).machine.system.chip.name == "gc200"
    with pytest.raises(DeviceError, match="No system of gc200 chips has 1024"):
        create_partition("d", 1024)


def test_a_partition_in_use_stays_unless_forced() -> None:
    for prepare in (lambda: None, lambda: create_pod("pod4")):
        prepare()
        partition = create_partition("p", 2)
        with Pod(partition.machine).acquire():
            with pytest.raises(DeviceBusyError, match="Partition p is in use"):
                remove_partition("p")
            remove_partition("p", force=True)
        assert list_partitions() == ()


def test_a_partition_that_nobody_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPUOF_VIPU_API_PARTITION_ID", "p1")
    with pytest.raises(DeviceError, match=r"no partition 'p1'.*vipu create partition"):
        find_machine()
    create_partition("p2", 2)
    with pytest.raises(DeviceError, match="Did you mean 'p2'"):
        find_machine()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("any.conf", '{"attributes": {"partition": "p"}, "devices": []}'),
        ("p_gcd0_ipuof.conf", "no JSON"),
        ("p_gcd12_ipuof.conf", '{"attributes": []}'),
        ("p.conf", "{}"),
    ],
)
def test_a_file_names_the_partition(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    create_partition("p", 2)
    monkeypatch.setenv("IPUOF_CONFIG_PATH", str(tmp_path / name))
    assert find_machine().partition == "p"


def test_a_file_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPUOF_CONFIG_PATH", "/nonesuch/p_gcd0_ipuof.conf")
    with pytest.raises(DeviceError, match="IPUOF_CONFIG_PATH cannot be read"):
        find_machine()


def test_entries_that_make_no_sense_are_left_out(state: Path) -> None:
    create_partition("p", 2)
    path = state / "partitions.json"
    good = path.read_text("utf-8").rstrip().removesuffix("}")
    path.write_text(good + ', "q": {}, "r": 3, "s": {"chips": ["x"]}}', "utf-8")
    assert [partition.name for partition in list_partitions()] == ["p"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=12))
def test_whatever_is_made_and_removed_chips_stay_apart(
    steps: list[tuple[bool, int]],
) -> None:
    create_pod("pod16")
    for number, (makes, exponent) in enumerate(steps):
        known = list_partitions()
        if makes or not known:
            with suppress(DeviceError):  # there may be no room
                create_partition(f"p{number}", 2**exponent)
        else:
            remove_partition(known[exponent % len(known)].name)
        taken = [chip for p in list_partitions() for chip in p.machine.chips]
        assert len(taken) == len(set(taken))
    remove_pod("pod16")


def test_the_example_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "pods.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out.strip() == example.rpartition("# ")[2].strip()
