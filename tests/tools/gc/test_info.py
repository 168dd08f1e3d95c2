"""gc-info and gc-inventory: the documented listings, and attributes that users grep."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from popple.device import Pod, create_partition, find_machine
from tests.tools.gc.conftest import Run

# The listing of a partition of four IPUs in the manual, but for addresses.
POD4 = """Graphcore device listing:
Partition: bow-pod4 [active]
-+- Id: [0], target: [Fabric], IPU-M host: [H], IPU#: [3]
-+- Id: [1], target: [Fabric], IPU-M host: [H], IPU#: [2]
-+- Id: [2], target: [Fabric], IPU-M host: [H], IPU#: [1]
-+- Id: [3], target: [Fabric], IPU-M host: [H], IPU#: [0]
-+- Id: [4], target: [Multi IPU]
 |--- Id: [0], DNC Id: [0], IPU-M host: [H], IPU#: [3]
 |--- Id: [1], DNC Id: [1], IPU-M host: [H], IPU#: [2]
-+- Id: [5], target: [Multi IPU]
 |--- Id: [2], DNC Id: [0], IPU-M host: [H], IPU#: [1]
 |--- Id: [3], DNC Id: [1], IPU-M host: [H], IPU#: [0]
-+- Id: [6], target: [Multi IPU]
 |--- Id: [0], DNC Id: [0], IPU-M host: [H], IPU#: [3]
 |--- Id: [1], DNC Id: [1], IPU-M host: [H], IPU#: [2]
 |--- Id: [2], DNC Id: [2], IPU-M host: [H], IPU#: [1]
 |--- Id: [3], DNC Id: [3], IPU-M host: [H], IPU#: [0]
"""

# Lines of the listing of a DSS 8440 in TensorFlow's documentation of select_ipus.
DSS8440 = """-+- Id:  [0], type:      [PCIe], PCI Domain: [0000:1a:00.0]
-+- Id: [15], type:      [PCIe], PCI Domain: [0000:bb:00.0]
-+- Id: [16], type: [Multi IPU]
|--- PCIe Id:  [5], DNC Id: [0], PCI Domain: [0000:3e:00.0]
|--- PCIe Id:  [7], DNC Id: [1], PCI Domain: [0000:44:00.0]
-+- Id: [24], type: [Multi IPU]
|--- PCIe Id:  [4], DNC Id: [2], PCI Domain: [0000:3d:00.0]
|--- PCIe Id:  [6], DNC Id: [3], PCI Domain: [0000:43:00.0]"""


def test_listing_of_a_pod(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_TARGET", "bow-pod4")
    status, out, _ = run("info", "-l")
    assert status == 0
    assert re.sub(r"host: \[[\d.]+\]", "host: [H]", out) == POD4


def test_listing_of_a_server_with_cards(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPPLE_TARGET", "dss8440")
    _, out, _ = run("info", "--list-devices")
    lines = out.splitlines()
    assert [line for line in DSS8440.splitlines() if line not in lines] == []
    at = next(n for n, line in enumerate(lines) if "Id: [24]" in line)
    members = [
        re.findall(r"PCIe Id:\s+\[(\d+)\]", line) for line in lines[at + 1 :][:4]
    ]
    assert sorted(int(found[0]) for found in members) == [4, 5, 6, 7]
    _, info, _ = run("info", "-d", "0", "-i")
    assert "  board type: C2\n" in info


def test_other_partitions_are_listed_on_demand(run: Run) -> None:
    create_partition("p2", 2)
    assert "p2" not in run("info", "-l")[1]
    assert "Partition: p2\n" in run("info", "-l", "--all-partitions")[1]


def test_what_scripts_grep(run: Run) -> None:
    status, out, _ = run("info", "-d", "0", "-i")
    lines = out.splitlines()
    assert status == 0
    assert lines[:3] == ["Device Info:", "  id: 0", "  target: Fabric"]
    found = [line for line in lines if "remote buffers supported:" in line]
    assert [line.split(": ")[1] for line in found] == ["1"]
    assert "  clock: 1850MHz" in lines
    assert "  link speed: 16.0 GT/s" in lines
    assert "  link width: 16" in lines


def test_short_answers(run: Run) -> None:
    assert run("info", "--ipu-arch")[1] == "ipu2\n"
    assert run("info", "--tile-clock-speed")[1] == "1850MHz\n"
    assert run("info", "-d", "30", "--ipu-count")[1] == "16\n"


def test_a_group_says_what_holds_for_all_of_it(run: Run) -> None:
    _, out, _ = run("info", "-d", "24", "-i")
    assert "  target: Multi IPU\n" in out
    assert "  ipu ids: 0 1 2 3\n" in out


@pytest.mark.usefixtures("small")
def test_tiles_of_an_idle_device(run: Run) -> None:
    _, out, _ = run("info", "-d", "0", "--tile-overview")
    lines = out.splitlines()
    # 64 tiles: one row of sixteen cells of four tiles.
    assert lines[0].split() == [str(n) for n in range(16)]
    assert lines[1] == "  0 " + " ".join(["::::"] * 16)
    assert "no program is loaded" in lines[2]


@pytest.mark.usefixtures("small")
def test_registers_and_memory_read_as_zero(run: Run) -> None:
    _, out, _ = run("info", "--tile-status", "-", "-c", "SU", "-r", "pc")
    assert out.splitlines()[1:3] == [
        "tile 0 SU PC: 0x00000000",
        "tile 1 SU PC: 0x00000000",
    ]
    assert len(out.splitlines()) == 65
    _, out, _ = run("info", "--dump-mem", "0", "0x4c000", "20")
    assert out.splitlines()[1:] == [
        "0x0004c000: 00000000 00000000 00000000 00000000",
        "0x0004c010: 00000000",
    ]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--tile-status", "64"], "'64' is no tile"),
        (["--tile-status", "0", "-c", "W9"], "No context 'W9'"),
        (["--tile-status", "0", "-c", "SU", "-r", "a0"], "No register 'a0'"),
        (["--dump-mem", "0", "0", "4"], "'0' is no address"),
        (["--dump-mem", "0", "0x4c000", "9999999"], "is no number of bytes"),
        (["--xb-status"], "virtual devices do not have"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], reason: str, run: Run
) -> None:
    status, _, err = run("info", *words)
    assert status == 2
    assert reason in err


def test_inventory_as_json(run_json: Callable[..., Any]) -> None:
    devices = run_json("inventory")["devices"]
    assert len(devices) == 16
    # What a helper of the published examples reads.
    assert devices[0]["remote buffers"] == "1"
    assert "user process id" not in devices[0]


def test_inventory_as_text_can_be_counted(run: Run) -> None:
    _, out, _ = run("inventory")
    assert sum("id:" in line for line in out.splitlines()) == 16
    assert '  "board type": "M2000"' in out.splitlines()


def test_a_device_in_use_names_its_process(run_json: Callable[..., Any]) -> None:
    with Pod(find_machine()).acquire(id=1):
        device = run_json("inventory")["devices"][1]
    assert device["user process id"].isdigit()
    assert re.fullmatch(r"\d{8}T\d{6}Z", device["process start time"])
    assert device["user executable"].startswith("python")
