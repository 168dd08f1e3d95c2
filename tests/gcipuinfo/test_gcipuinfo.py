"""gcipuinfo as monitoring programs use it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import gcipuinfo
from popple.device import Pod, create_partition, find_machine
from popple.device.events import record_event

# What wandb's IPUStats samples again and again.
VARIABLE_METRICS = (
    "average board temp",
    "average die temp",
    "clock",
    "ipu power",
    "ipu utilisation",
    "ipu utilisation (session)",
)
SUFFIXES = (" C", "MHz", " W", "W", "%", " GT/s")


def sample(inventory: gcipuinfo.gcipuinfo, pid: int) -> dict[str, float]:
    """As IPUStats reads: the devices of a process, their texts without suffixes."""
    found: dict[str, float] = {}
    for device in inventory.getDevices():
        metrics = dict(device)
        owner = metrics.get("user process id")
        if owner is None or int(owner) != pid:
            continue
        for name in VARIABLE_METRICS:
            text = metrics[name]
            for suffix in SUFFIXES:
                text = text.removesuffix(suffix)
            found[f"ipu.{metrics['id']}.{name}"] = float(text)
    return found


def test_a_live_sample_of_a_process() -> None:
    inventory = gcipuinfo.gcipuinfo()
    inventory.setUpdateMode(True)
    assert sample(inventory, os.getpid()) == {}
    with Pod(find_machine()).acquire(num_chips=2):
        found = sample(inventory, os.getpid())
    assert len(found) == 2 * len(VARIABLE_METRICS)
    assert found["ipu.1.clock"] == 1850
    assert sample(inventory, os.getpid()) == {}


def test_the_clock_as_a_benchmark_reads_it() -> None:
    assert int(gcipuinfo.gcipuinfo().getDevices()[0]["clock"][:-3]) == 1850


def test_the_power_as_a_meter_reads_it() -> None:
    powers = gcipuinfo.gcipuinfo().getNamedAttributeForAll(gcipuinfo.IpuPower)
    assert len(powers) == 16
    assert sum(float(power[:-1]) for power in powers if power != "N/A") > 0


def test_attributes_are_read_once_unless_updated() -> None:
    inventory = gcipuinfo.gcipuinfo()
    with Pod(find_machine()).acquire(id=3):
        key = gcipuinfo.UserProcessId
        assert inventory.getNamedAttributeForDevice(3, key) == "N/A"
        assert inventory.updateData()
        assert inventory.getNamedAttributeForDevice(3, key) == str(os.getpid())


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="their ids are 0 to 15"):
        gcipuinfo.gcipuinfo().getNamedAttributeForDevice(16, gcipuinfo.Clock)


def test_json_is_that_of_the_inventory() -> None:
    inventory = gcipuinfo.gcipuinfo(gcipuinfo.DiscoverActivePartitionIPUs)
    found = json.loads(inventory.getDevicesAsJSON())
    assert found == {"devices": inventory.getDevices()}


def test_all_partitions() -> None:
    create_partition("p1", 2)
    inventory = gcipuinfo.gcipuinfo(gcipuinfo.DiscoverAllPartitionIPUs)
    names = inventory.getNamedAttributeForAll(gcipuinfo.IpuofPartitionId)
    assert names.count("p1") == 2
    with pytest.raises(RuntimeError, match="both in one process"):
        gcipuinfo.gcipuinfo()


def test_labels_are_keys_of_attributes() -> None:
    with Pod(find_machine()).acquire(id=0):
        device = gcipuinfo.gcipuinfo().getDevices()[0]
    labels = [
        value
        for name, value in vars(gcipuinfo).items()
        if name[0].isupper() and isinstance(value, str)
    ]
    assert len(labels) == 33
    assert set(labels) <= set(device)


def test_health(monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = gcipuinfo.gcipuinfo()
    assert inventory.checkHealthOfDevices() == "{}"
    options = {
        "simulateSOCError.errorList": ["IPUSOFTERR", {"type": "host", "ipu": 3}],
        "simulateSOCError.triggerCount": 1,
    }
    monkeypatch.setenv("GCDA_OPTIONS", json.dumps(options))
    (failing,) = json.loads(inventory.checkHealthOfDevices())["hosts"].values()
    assert [(f["id"], f["error"]) for f in failing] == [
        ("0", "device"),
        ("3", "connection"),
    ]
    monkeypatch.setenv("GCDA_OPTIONS", "nonsense")
    assert "not JSON" in json.loads(inventory.checkHealthOfDevices())["error"]


def test_the_last_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = gcipuinfo.gcipuinfo()
    assert inventory.getLastAppEventRecord() == {}
    with Pod(find_machine()).acquire(id=5) as lease:
        record_event(tmp_path, lease, "It broke.")
    event = inventory.getLastAppEventRecord(str(tmp_path))
    assert event[gcipuinfo.gcipuinfo.keyDescription] == "It broke."
    assert event[inventory.keySpecificIPUs] == "5"
    monkeypatch.setenv("IPU_APP_EVENT_RECORD_PATH", str(tmp_path))
    assert json.loads(inventory.getLastAppEventRecordAsJSON()) == event
