"""The virtual pod that TensorFlow devices are made of, and the log of the back end.

`popple.device.find_machine` says which one. TF_IPU_COUNT, which test suites use, says
how many IPUs there are: a larger machine is taken, or less of it used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from popple.device import Device, Pod, find_machine
from popple.errors import DeviceError
from popple.session.settings import DEFAULT_TARGET, read_settings
from popple.target import System, load_system

__all__ = [
    "find_model",
    "find_pod",
    "find_size",
    "find_system",
    "get_device",
    "log_attached",
]

# The IPU Model simulates a version, not a machine: the largest usual one of that kind.
_MODELS: Mapping[str, str] = {"ipu1": "dss8440", "ipu2": "pod16", "ipu21": "c600x8"}
# As the log of the original looks, so that programs that search it find the line.
_SOURCE = "tensorflow/compiler/plugin/poplar/driver/executor.cc:660"


def find_pod() -> Pod | None:
    """The pod of this machine; None if TF_IPU_COUNT says that there is none."""
    count = _max_ipus()
    if count <= 0:
        return None
    least = count if "TF_IPU_COUNT" in os.environ else 0
    return Pod(find_machine(read_settings().target, min_chips=least))


def find_size(num_ipus: int) -> int | None:
    """How many IPUs the smallest devices have that hold so many; None: none does."""
    pod = find_pod()
    if pod is None or num_ipus > _max_ipus():
        return None
    sizes = {device.num_chips for device in pod.devices}
    return min((size for size in sizes if size >= num_ipus), default=None)


def get_device(id: int) -> Device:
    """The device of that id, a single IPU or several."""
    pod = find_pod()
    if pod is None:
        raise DeviceError(
            f"There is no device {id}: TF_IPU_COUNT says that there are no IPUs.",
            remedy="Unset it, or use the IPU Model (TF_POPLAR_FLAGS=--use_ipu_model).",
        )
    return pod.device(id)


def find_system(version: str) -> System:
    """The machine that a program runs on, or would run on if it held any IPU.

    `version` is that of the IPU it is compiled for; the pod is taken if it fits.
    """
    pod = find_pod()
    system = pod.system if pod else find_model("", 0)
    fits = not version or version == system.chip.architecture
    return system if fits else find_model(version, 0)


def find_model(version: str, tiles_per_ipu: int) -> System:
    """What an IPU Model of that version simulates; 0 tiles: as many as it has."""
    system = load_system(_MODELS.get(version, DEFAULT_TARGET))
    if tiles_per_ipu <= 0:
        return system
    return replace(system, chip=replace(system.chip, num_tiles=tiles_per_ipu))


def log_attached(ordinal: int, device: Device) -> None:
    """Say on stderr, as TensorFlow logs, what a device is attached to."""
    # The original's line comes from C++, which this variable silences.
    if int(os.environ.get("TF_CPP_MIN_LOG_LEVEL") or 0) > 0:
        return
    plural = "s" if device.num_chips > 1 else ""
    sys.stderr.write(
        f"{datetime.now():%Y-%m-%d %H:%M:%S.%f}: I {_SOURCE}] "
        f"Device /device:IPU:{ordinal} attached to IPU{plural}: {device.id}\n"
    )


def _max_ipus() -> int:
    return int(os.environ.get("TF_IPU_COUNT") or sys.maxsize)
