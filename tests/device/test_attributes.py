"""Attributes, sites and events: the same for every tool that shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.device import Pod, find_machine
from popple.device.attributes import describe, executable_of
from popple.device.boards import board_type, site_of
from popple.device.events import FILE_NAME, read_event, record_event
from popple.device.views import look
from popple.target import load_system

# Keys of the listing of an IPU-Machine in the manual that hold for virtual ones too.
DOCUMENTED = """id, target, average board temp, average die temp, board ipu index,
board serial number, board type, board variant, clock, driver version,
firmware major version, firmware minor version, firmware patch version,
firmware version, gateway software version, graph streaming,
hexoatt active size (bytes), hexoatt total size (bytes), hexopt active size (bytes),
hexopt total size (bytes), host link correctable error count, icu bootloader version,
ipu architecture, ipu error state, ipu power, ipu utilisation,
ipu utilisation (session), ipuof host, ipuof partition id, ipuof routing id,
ipuof routing type, ipuof server version, link correctable error count,
link correctable error count (session), link speed, link width, numa node,
number of replicas, parity error count threshold, parity error threshold interval,
parity initialised, partition sync type, pci id, pcie physical slot,
reconfigurable partition, remote buffers supported, sysfs file id, total board power"""
IN_USE = {"process start time", "user executable", "user name", "user process id"}


def test_a_device_has_the_documented_attributes() -> None:
    pod = Pod(find_machine())
    keys = {key.strip() for key in DOCUMENTED.replace("\n", " ").split(",")}
    assert set(describe(pod.machine, pod.device(0))) == keys | {"remote buffers"}
    with pod.acquire(id=0):
        assert set(describe(pod.machine, pod.device(0))) - keys == IN_USE | {
            "remote buffers"
        }


def test_utilisation_and_power_follow_what_runs() -> None:
    pod = Pod(find_machine())
    idle = describe(pod.machine, pod.device(0))
    with pod.acquire(id=0) as lease, lease.activity.running():
        holders = pod.holders()
        later = holders[0].activity.changed + 60
        busy = describe(pod.machine, pod.device(0), holders, later)
    assert idle["ipu utilisation"] == "0.00%"
    assert busy["ipu utilisation"] == "100.00%"
    for key in ("ipu power", "total board power", "average die temp"):
        assert float(busy[key].split()[0]) > float(idle[key].split()[0])


def test_boards_of_a_pod_hold_two_chips() -> None:
    system = load_system("bow-pod16")
    sites = [site_of(system, "m", chip_id) for chip_id in range(16)]
    assert [site.ipu_number for site in sites[:5]] == [3, 2, 1, 0, 3]
    assert len({site.serial for site in sites}) == 8
    assert len({site.server for site in sites}) == 4


@pytest.mark.parametrize(
    ("name", "expected"),
    [("dss8440", "C2"), ("c600x4", "C600"), ("pod16", "M2000"), ("bow", "M2000")],
)
def test_kinds_of_boards(name: str, expected: str) -> None:
    assert board_type(load_system(name)) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/usr/bin/python3 train.py", "python3"),
        ("/usr/bin/python3 /usr/bin/gc-flops -d 0", "gc-flops"),
        ("python '", "python"),
        ("", ""),
    ],
)
def test_the_executable_of_a_command(command: str, expected: str) -> None:
    assert executable_of(command) == expected


def test_an_event_replaces_a_lesser_one(tmp_path: Path) -> None:
    with Pod(find_machine()).acquire(num_chips=2) as lease:
        record_event(tmp_path, lease, "first", "warning")
        record_event(tmp_path, lease, "second", "error")
        record_event(tmp_path, lease, "third", "info")
    found = read_event(tmp_path)
    assert (found["description"], found["severity"]) == ("second", "error")
    assert found["attached ipus"] == "0,1"
    assert found["event record path"] == str(tmp_path / FILE_NAME)


@pytest.mark.parametrize("text", ["", "[]", '{"severity": 3}', '{"severity": "x"}'])
def test_a_record_that_makes_no_sense_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="utf-8")
    assert read_event(tmp_path) == {}


def test_looking_disturbs_nobody() -> None:
    pod = Pod(find_machine())
    with pod.acquire(id=0) as lease:
        views = [look()[0] for _ in range(3)]
        assert lease.is_held
    assert [[h.chip_id for h in view.holders] for view in views] == [[0]] * 3
