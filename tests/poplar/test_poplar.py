"""poplar: constants of targets, devices, and a clear word about what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

import poplar


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_STATE", str(tmp_path / "state"))
    for name in ("POPPLE_TARGET", "IPUOF_VIPU_API_PARTITION_ID", "IPUOF_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)


def test_constants_of_a_bow() -> None:
    target = poplar.Target.createIPUTarget(1, "bow")
    assert target.getTargetType() is poplar.TargetType.IPU
    assert target.getTilesPerIPU() == 1472
    assert target.getNumWorkerContexts() == 6
    assert target.getTilesPerIPU() * target.getNumWorkerContexts() == 8832
    assert target.getBytesPerTile() == 638976
    assert target.getMemoryBytes() == 940572672
    assert target.getTileClockFrequency() == 1.85e9


def test_a_target_of_several_ipus() -> None:
    target = poplar.Target.createIPUTarget(4, 16, "ipu2")
    assert target.getNumIPUs() == 4
    assert target.getNumTiles() == 64
    assert target.getTargetArchString() == "ipu2"
    assert target == poplar.Target.createIPUTarget(4, 16, "ipu2")
    assert target != poplar.Target.createIPUTarget(4, "ipu2")


def test_devices_of_the_machine() -> None:
    manager = poplar.DeviceManager.createDeviceManager()
    assert len(manager.getDevices()) == 31
    fours = manager.getDevices(poplar.TargetType.IPU, 4)
    assert [device.getId() for device in fours] == [24, 25, 26, 27]
    assert fours[1].getDriverIDs() == [4, 5, 6, 7]
    assert fours[1].getTarget().getNumIPUs() == 4
    assert manager.getDevices(poplar.TargetType.CPU) == []


def test_attaching() -> None:
    manager = poplar.DeviceManager()
    device, other = manager.getDevice(0), manager.getDevice(poplar.TargetType.IPU, 16)
    assert device.attach()
    assert device.attach()
    assert device.isAttached()
    assert not other.attach()
    assert device.getAttribute("user process id").isdigit()
    device.detach()
    assert not device.isAttached()
    assert other.attach()
    other.detach()


def test_attributes() -> None:
    device = poplar.DeviceManager().getDevice(0)
    assert device.getAttribute("clock") == "1850MHz"
    assert device.supportsRemoteBuffers()
    assert device.hasGateway()
    with pytest.raises(KeyError, match="has no 'colour'"):
        device.getAttribute("colour")


def test_names_that_are_not_there_say_what_is() -> None:
    with pytest.raises(ImportError, match=r"poplar/Engine\.hpp.*popple doctor"):
        from poplar import Engine  # pyright: ignore[reportAttributeAccessIssue] # noqa: F401
    with pytest.raises(AttributeError, match="it has Device, DeviceManager, Target"):
        poplar.Nothing  # noqa: B018
