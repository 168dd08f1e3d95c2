"""Devices: what a configuration makes of the virtual pod."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.ipu import _device, config, utils
from tensorflow.python.ipu._device import virtual_pod
from tensorflow.python.ipu._device.devices import Devices

from popple.device import Pod, list_machines
from popple.errors import DeviceError

pytestmark = pytest.mark.usefixtures("own_pod")

Connection = config.DeviceConnectionType


def configure(
    *counts: int, ids: list[int] | None = None, type: Any = Connection.ALWAYS
) -> None:
    made = config.IPUConfig()
    made.auto_select_ipus = list(counts)
    made.select_ipus = ids or []
    made.device_connection.type = type
    made.device_connection.version = "ipu2"
    made.configure_ipu_system()


def held_chips() -> list[int]:
    pod = virtual_pod.find_pod()
    assert pod is not None
    return sorted(holder.chip_id for holder in pod.holders())


def hold(num_chips: int) -> Any:
    pod = virtual_pod.find_pod()
    assert pod is not None
    return pod.acquire(num_chips)


def test_without_configuration_a_device_has_one_ipu() -> None:
    assert [_device.num_ipus(0), _device.num_ipus(5)] == [1, 1]
    assert not _device.configured()
    assert held_chips() == []


def test_a_list_makes_several_devices() -> None:
    configure(2, 4)
    assert utils.get_num_of_ipus_in_device("/device:IPU:0") == 2
    assert utils.get_num_of_ipus_in_device("/device:IPU:1") == 4
    assert len(held_chips()) == 6
    assert len(config.get_ipu_config()) == 2


def test_devices_beyond_the_list_have_one_ipu() -> None:
    configure(2)
    assert (_device.num_ipus(1), _device.configured(1)) == (1, False)


def test_ids_of_groups() -> None:
    # On 16 chips, 0 to 15 are the chips, 16 to 23 pairs, 24 to 27 fours.
    configure(ids=[24, 3 + 4])
    assert (_device.num_ipus(0), _device.num_ipus(1)) == (4, 1)
    assert held_chips() == [0, 1, 2, 3, 7]


def test_attaching_is_logged(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    configure(1)
    configure(4)
    lines = [line for line in capfd.readouterr().err.splitlines() if "attached" in line]
    assert lines[0].endswith("executor.cc:660] Device /device:IPU:0 attached to IPU: 0")
    assert lines[1].endswith("] Device /device:IPU:0 attached to IPUs: 24")


def test_the_log_can_be_turned_down(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    configure(1)
    assert "attached" not in capfd.readouterr().err


def test_on_demand_attaches_when_something_runs() -> None:
    configure(2, type=Connection.ON_DEMAND)
    assert held_chips() == []
    _device.attach(0)
    _device.attach(0)
    assert held_chips() == [0, 1]


def test_never_attaches_nor_runs() -> None:
    configure(3, type=Connection.NEVER)
    assert _device.num_ipus() == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="compilation only"):
        _device.attach(0)


def test_pre_compile_needs_no_ipus() -> None:
    configure(3, type=Connection.PRE_COMPILE)
    _device.attach(0)
    assert held_chips() == []


def test_unknown_options_of_the_engine_are_refused_when_something_runs() -> None:
    made = config.IPUConfig()
    made.compilation_poplar_options = {"debug.instrument": "true", "nonsense": "1"}
    made.configure_ipu_system()
    with pytest.raises(tf.errors.InternalError, match="Unrecognised option 'nonsense'"):
        _device.attach(0)


def test_options_of_every_group_of_the_engine_are_known() -> None:
    made = config.IPUConfig()
    made.compilation_poplar_options = {
        "device.clearAtomicFlagAfterExchange": "false",
        "memory.alignmentStrategy": "default",
    }
    made.configure_ipu_system()
    _device.attach(0)
    assert len(held_chips()) == 1


def test_numbers_between_those_of_devices() -> None:
    configure(3)
    assert _device.num_ipus(0) == 3
    assert len(held_chips()) == 4  # devices have 1, 2, 4, 8 or 16


def test_numbers_that_no_device_has() -> None:
    with pytest.raises(tf.errors.FailedPreconditionError, match="no device has 17"):
        configure(17)
    assert not _device.configured()


def test_ids_that_no_device_has() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="no device 31"):
        configure(ids=[31])


def test_a_failed_configuration_holds_nothing() -> None:
    with hold(8), pytest.raises(tf.errors.InternalError, match="expected to have 16"):
        configure(16)
    assert held_chips() == []
    assert not _device.configured()


def test_busy_ipus_are_waited_for_on_demand() -> None:
    lease, waits = hold(16), list[float]()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            lease.release()

    devices = Devices(wait=wait)
    made = config.IPUConfig()
    made.auto_select_ipus = 1
    made.device_connection.type = Connection.ON_DEMAND
    devices.configure(made._create_protobuf())
    devices.attach(0)
    devices.reset()
    assert waits == [1.0] * 3


def test_waiting_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = "--use_on_demand --on_demand_device_timeout=250 "
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags + "--on_demand_device_poll_time=1")
    now = [0.0]
    devices = Devices(lambda s: now.__setitem__(0, now[0] + s), lambda: now[0])
    devices.configure(config.IPUConfig()._create_protobuf())
    with hold(16), pytest.raises(tf.errors.InternalError, match="Could not attach"):
        devices.attach(0)
    # Polls are at least 0.1 s apart: at 0.1, 0.2 and 0.3 s, which is too late.
    assert now[0] == pytest.approx(0.3)


def test_another_configuration_replaces_the_first() -> None:
    configure(2)
    configure(4)
    assert (_device.num_ipus(), len(held_chips())) == (4, 4)


def test_replacing_can_be_forbidden() -> None:
    configure(2)
    other = config.IPUConfig()
    other.auto_select_ipus = 4
    with pytest.raises(tf.errors.FailedPreconditionError, match="already"):
        config.configure_ipu_system(other, reset_configuration=False)
    assert _device.num_ipus() == 2


def test_devices_that_attached_before_they_were_configured() -> None:
    _device.attach(0)
    assert held_chips() == [0]
    configure(2)
    assert held_chips() == [0, 1]


def test_the_same_configuration_changes_nothing() -> None:
    calls: list[int] = []
    _device.on_reset(lambda: calls.append(1))
    configure(2)
    before = len(calls)
    configure(2)
    config.reset_ipu_configuration()
    assert len(calls) == before + 1


def test_reset_gives_the_ipus_back() -> None:
    configure(2)
    config.reset_ipu_configuration()
    assert held_chips() == []
    with pytest.raises(RuntimeError, match="No IPU devices configured"):
        config.get_ipu_config()


def test_what_is_not_a_configuration() -> None:
    with pytest.raises(TypeError, match="`config` must be an IpuOptions instance"):
        config.configure_ipu_system({"auto_select_ipus": 2})
    with pytest.raises(tf.errors.InvalidArgumentError, match="not made by"):
        config.configure_ipu_system(config.IpuOptions())


def test_the_model_holds_no_ipus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    configure(3)
    assert (_device.use_ipu_model(), _device.num_ipus(), held_chips()) == (True, 3, [])


def test_tiles_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model --ipu_model_tiles=64")
    assert _device.system().chip.num_tiles == 64
    made = config.IPUConfig()
    made.auto_select_ipus = 1
    made.ipu_model.tiles_per_ipu = 128
    made.ipu_model.version = "ipu1"
    made.configure_ipu_system()
    chip = _device.system().chip
    assert (chip.num_tiles, chip.architecture) == (128, "ipu1")


@pytest.mark.parametrize(("count", "largest"), [("4", 4), ("16", 16), ("64", 64)])
def test_number_of_ipus(
    count: str, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_IPU_COUNT", count)
    assert virtual_pod.find_size(largest) == largest
    assert virtual_pod.find_size(2 * largest) is None


def test_no_ipus_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_IPU_COUNT", "0")
    with pytest.raises(tf.errors.InvalidArgumentError, match="There are no IPUs"):
        configure(1)


def test_ordinals() -> None:
    names = ["/device:IPU:1", "/job:localhost/replica:0/task:0/device:IPU:2", ""]
    assert [_device.ordinal_of(name) for name in names] == [1, 2, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid device name"):
        _device.ordinal_of("/device:IPU")


def test_the_type_of_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHCORE_POD_TYPE", "pod4")
    configure(4)
    assert _device.system().name == "pod4"
    _device.reset()
    monkeypatch.setenv("GRAPHCORE_POD_TYPE", "pod5")
    with pytest.raises(DeviceError, match="GRAPHCORE_POD_TYPE is 'pod5'"):
        configure(1)
    assert not _device.configured()


HOLDER = """
import tempfile, sys
tempfile.tempdir = sys.argv[1]
from popple.device import Pod, find_machine
lease = Pod(find_machine()).acquire(id=30)
print("held", flush=True)
sys.stdin.read()
"""


def run_holder(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that has taken all IPUs of the machine once this returns."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    return other


def test_ipus_of_a_pod_that_other_processes_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPPLE_TARGET", "bow-pod16")
    with run_holder(tmp_path) as other:
        with pytest.raises(tf.errors.InternalError, match=f"process {other.pid}"):
            configure(1)
        other.communicate("")
    configure(1)


def test_the_default_machine_never_blocks(tmp_path: Path) -> None:
    with run_holder(tmp_path) as other:
        configure(16)
        first, second = list_machines()
        found = [{h.pid for h in Pod(m).holders()} for m in (first, second)]
        assert found == [{other.pid}, {os.getpid()}]
        other.communicate("")


def test_four_ipus_of_a_dss8440(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The log and the ids of a tutorial that was written on one.
    monkeypatch.setenv("POPPLE_TARGET", "dss8440")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    configure(4)
    assert "] Device /device:IPU:0 attached to IPUs: 24\n" in capfd.readouterr().err
    assert held_chips() == [4, 5, 6, 7]


def test_runs_are_counted() -> None:
    configure(2)
    with _device.running(0):
        pod = virtual_pod.find_pod()
        assert pod is not None
        (first, second) = pod.holders()
    assert (first.activity.runs, first.activity.running) == (1, 1)
    assert second.activity == first.activity
