"""The tools that test: they pass on a healthy device and name what is broken."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from popple.device.activity import read_activity
from popple.device.events import FILE_NAME
from popple.target import load_system
from popple.tools.gc.devices import take_device
from popple.tools.gc.flops import measure_product, measure_units
from popple.tools.gc.hostsynclatencytest import time_to_sync
from popple.tools.gc.traffic import time_links
from tests.tools.gc.conftest import Run

Inject = Callable[..., None]
RunJson = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("small")


def test_healthy_memory_passes(run: Run) -> None:
    status, out, _ = run("memorytest", "-d", "4")
    assert status == 0
    assert out.splitlines() == [
        "IPU 0: 64 tiles, 39.0 MiB: 0 bad tiles",
        "IPU 1: 64 tiles, 39.0 MiB: 0 bad tiles",
        "Memory test passed",
    ]


@pytest.mark.parametrize(("stuck", "pattern"), [(1, "zeros"), (0, "ones")])
def test_a_bad_tile_is_named(
    stuck: int, pattern: str, run: Run, inject: Inject
) -> None:
    fault = {"type": "memory", "tile": 17, "address": 100, "bit": 3, "stuck": stuck}
    inject(fault, count=5)
    status, out, _ = run("memorytest", "-d", "0", "-j")
    found = json.loads(out)
    assert status == 1
    assert found["overall_result"] == "failed"
    # The word with address 100: 0x4c000 + 96.
    bad = {"tile": "17", "address": "0x4c060", "pattern": pattern}
    assert found["ipus"][0]["bad_tiles"] == [bad]


def test_a_fault_acts_as_often_as_it_is_said_to(run: Run, inject: Inject) -> None:
    # Stuck at 0, and spent when the second pattern writes ones.
    inject({"type": "memory", "tile": 1, "stuck": 0}, count=1)
    assert run("memorytest", "-d", "0")[0] == 0
    inject({"type": "memory", "tile": 1, "ipu": 1})
    assert run("memorytest", "-d", "0")[0] == 0
    assert run("memorytest", "-d", "4")[0] == 1


def test_a_reset_arms_a_fault_again(run: Run, inject: Inject) -> None:
    for rearm, expected in ((False, "1"), (True, "2")):
        inject({"type": "link", "ipu": 2}, rearm=rearm)
        status, out, _ = run("links", "-i", "2", "-j")
        assert status == 1
        assert json.loads(out)["iterations_with_failures"] == expected


@pytest.mark.parametrize("name", ["exchangetest", "exchangewritetest"])
def test_the_exchange_moves_every_word(name: str, run_json: RunJson) -> None:
    tests = run_json(name)["tests"]
    assert {test["result"] for test in tests} == {"passed"}
    assert all(int(test["cycles"]) > 0 for test in tests)
    limit = 64 * 4 * 1.85e9 / 1e12
    assert all(float(test["terabytes_per_second"]) < limit for test in tests)


@pytest.mark.parametrize("name", ["exchangetest", "exchangewritetest"])
def test_a_fault_of_the_exchange_is_found(name: str, run: Run, inject: Inject) -> None:
    inject({"type": "exchange", "tile": 9, "bit": 31})
    status, out, _ = run(name, "-d", "0")
    assert status == 1
    assert out.splitlines()[0].endswith("FAILED on tiles 9")
    assert out.splitlines()[-1] == "Exchange test failed"


def test_all_to_all_is_among_the_patterns(run_json: RunJson) -> None:
    names = [test["pattern"] for test in run_json("exchangetest")["tests"]]
    assert names == ["neighbour", "opposite", "reversed", "shuffled", "all-to-all"]


def test_links_as_documented(run_json: RunJson) -> None:
    found = run_json("links")
    first = found["iteration_0"]
    assert first["warning"] == "Links already trained - no training performed"
    assert first["discovery_method"] == "VIRM"
    assert [len(ipu["links"]) for ipu in first["ipus"]] == [10] * 4
    assert found["requested_iterations"] == "1"
    assert found["iterations_with_failures"] == "0"
    assert found["overall_result"] == "passed"


def test_links_lead_both_ways(run_json: RunJson) -> None:
    ipus = run_json("links")["iteration_0"]["ipus"]
    ends = [
        (ipu["id"], link["to ipu"])
        for ipu in ipus
        for link in ipu["links"]
        if "to ipu" in link
    ]
    assert sorted(ends) == sorted((there, here) for here, there in ends)


def test_a_broken_link_is_named(run: Run, inject: Inject) -> None:
    inject({"type": "link", "ipu": 2, "link": 5})
    status, out, _ = run("links")
    assert status == 1
    assert "IPU 2: NLC_E_0A to IPU 3: failed" in out.splitlines()


def test_traffic_between_ipus(run_json: RunJson) -> None:
    found = run_json("iputraffictest", "--device0", "0", "--device1", "3")
    traffic = found["tile_to_tile"]
    assert (traffic["device0"], traffic["device1"]) == ("0", "3")
    assert traffic["errors"] == "0"
    assert traffic["kbytes_transferred"] == str(2 * 64 * 64 * 1000)
    assert 0 < float(traffic["gbps"]) < 320


@pytest.mark.parametrize("ipu", [0, 1])
def test_wrong_words_between_ipus_are_counted(
    ipu: int, run: Run, inject: Inject
) -> None:
    inject({"type": "link", "ipu": ipu})
    status, out, _ = run("iputraffictest", "-j")
    assert status == 1
    assert int(json.loads(out)["tile_to_tile"]["errors"]) > 0


def test_all_links_are_tested_pair_by_pair(run_json: RunJson) -> None:
    found = run_json("iputraffictest", "--all-links", "-i", "1")
    pairs = [(row["device0"], row["device1"]) for row in found["tile_to_tile"]]
    assert pairs == [("0", "1"), ("1", "2"), ("2", "3")]


def test_traffic_stays_below_the_data_sheet() -> None:
    system = load_system("bow-pod16")
    num_bytes = 2 * 64 * 1024 * system.chip.num_tiles
    for there in range(1, 16):
        rate = num_bytes / time_links(system, [(0, there)], 64 * 1024, 1)
        assert rate < system.chip.link_peak_bytes_per_second == 320e9


def test_endless_json_is_refused(run: Run) -> None:
    assert run("iputraffictest", "--forever", "-j")[0] == 2
    assert run("iputraffictest", "--device0", "1", "--device1", "1")[0] == 2


def test_traffic_is_between_single_ipus(run: Run) -> None:
    status, _, err = run("iputraffictest", "--device0", "0", "--device1", "4")
    assert status == 3
    assert "There is no single IPU 4" in err


def test_gateways_need_two_racks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    status, _, err = run("gwlinkstraffictest")
    assert status == 3
    assert "is one rack" in err
    monkeypatch.setenv("POPPLE_TARGET", "bow-pod128")
    status, out, _ = run("gwlinkstraffictest", "-i", "1", "-j")
    found = json.loads(out)
    assert (status, found["errors"], found["racks"]) == (0, "0", "2")
    # Two links of 100 Gb/s, both ways.
    assert 0 < float(found["gbps"]) < 50


def test_host_traffic_both_ways(run_json: RunJson) -> None:
    found = run_json("hosttraffictest", "-d", "0")
    assert found["configuration"] == {
        "number_of_ipus": "1",
        "tile_transfers_enabled": "true",
        "tiles_per_ipu": "32",
        "transfer_size_64byte_blocks": "1024",
        "iterations": "1000",
        "host_transfers_enabled": "true",
    }
    tests = found["repeat_0"]
    assert {"host_from_buffer_from_tile", "host_to_buffer_to_tile"} <= set(tests)
    assert all(0 < float(t["host_transfer_speed_gbps"]) < 64 for t in tests.values())


def test_wrong_words_from_the_host_are_counted(run: Run, inject: Inject) -> None:
    inject({"type": "host"})
    status, out, _ = run("hosttraffictest")
    assert status == 1
    assert out.splitlines()[-1] == "Host traffic test failed"


def test_sync_latency(run_json: RunJson, run: Run) -> None:
    found = run_json("hostsynclatencytest", "-m", "posted")
    assert found["sync_mode"] == "posted"
    assert found["mark_count"] == "4095"
    assert found["result"] == "passed"
    _, out, _ = run("hostsynclatencytest")
    assert {line[:2] for line in out.splitlines()} == {"o "}
    assert run("hostsynclatencytest", "--delay-val", "21")[0] == 2


def test_a_sync_of_more_ipus_takes_longer() -> None:
    system = load_system("bow-pod16")
    assert time_to_sync(system, 1, "posted") < time_to_sync(system, 16, "posted")
    assert time_to_sync(system, 1, "posted") < time_to_sync(system, 1, "polling")


def test_flops_as_documented(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_TARGET", "bow-pod4")
    status, out, _ = run("flops", "-p", "fp32")
    lines = out.splitlines()
    assert status == 0
    assert lines[0].startswith("Flops per IPU (FP32): ")
    assert "teraFLOPS (took: " in lines[0]
    assert lines[1:] == ["IPU clock speed: 1850 MHz"]
    assert run("flops", "-p", "FP8")[0] == 2


# 1472 tiles, 1.85 GHz, two operations: 16 units of 4 inputs for FP16, of one for FP32.
@pytest.mark.parametrize(("precision", "peak"), [("FP16", 348.57), ("FP32", 87.14)])
def test_units_at_work_reach_their_peak(precision: str, peak: float) -> None:
    system = load_system("bow-pod4")
    units = measure_units(system, precision).rate / 1e12
    product = measure_product(system, precision).rate / 1e12
    assert 0.999 * peak < units < peak
    assert 0.5 * peak < product < units


def test_power_rises_under_load(run: Run) -> None:
    status, out, _ = run("powertest", "-d", "0", "-n", "3", "-s", "0.05")
    rows = out.splitlines()[1:]
    powers = [float(row.split()[2].removesuffix("W")) for row in rows]
    assert status == 0
    assert [row[:8] for row in rows] == ["| 0001: ", "| 0002: ", "| 0003: "]
    assert powers == sorted(powers)
    assert powers[0] < powers[-1]


def test_the_power_test_ends_when_interrupted() -> None:
    command = [sys.executable, "-m", "popple.tools.gc.powertest", "-s", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as test:
        assert test.stdout is not None
        rows = [test.stdout.readline() for _ in range(3)]
        test.send_signal(signal.SIGINT)
        rest = test.stdout.read()
    assert rows[2].startswith("| 0002: ")
    assert rest.endswith("Interrupted.\n")
    assert test.returncode == 0


def test_a_reset_says_what_it_did(run: Run) -> None:
    assert run("reset", "-d", "1")[:2] == (0, "Device 1 was reset (1 IPU).\n")
    assert run("reset")[:2] == (0, "Device 6 was reset (4 IPUs).\n")


def test_a_reset_clears_what_the_last_user_left(run: Run, state: Path) -> None:
    # A holder that was killed leaves its counters: nothing of it may be read later.
    with take_device(1) as lease, lease.activity.running():
        (left,) = state.rglob("*.activity")
        counters = left.read_bytes()
    left.write_bytes(counters)
    assert read_activity(left).runs == 1
    assert run("reset", "-d", "1")[0] == 0
    cleared = read_activity(left)
    assert (cleared.runs, cleared.busy_seconds, cleared.heat) == (0, 0.0, 0.0)


def test_a_chip_error_ends_a_test_and_is_recorded(
    run: Run, inject: Inject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPU_APP_EVENT_RECORD_PATH", str(tmp_path))
    inject("IPUSOFTERR")
    status, out, _ = run("hosttraffictest", "-d", "0")
    assert status == 1
    assert "IPU (SoC) error IPUSOFTERR on device 0" in out
    event = json.loads((tmp_path / FILE_NAME).read_text(encoding="utf-8"))
    assert event["severity"] == "error"
    assert event["attached ipus"] == "0"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"type": "memory", "tile": 64}, "tile of a memory fault is 64"),
        ({"type": "memory", "bit": 8}, "bit of a memory fault is 8"),
        ({"type": "link", "link": 10}, "link of a link fault is 10"),
    ],
)
def test_a_fault_outside_the_device_is_refused(
    fault: object, reason: str, run: Run, inject: Inject
) -> None:
    inject(fault)
    status, _, err = run("memorytest")
    assert status == 2
    assert reason in err
