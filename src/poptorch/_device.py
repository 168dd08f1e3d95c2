"""The virtual pod that models attach to.

POPPLE_TARGET names the system (default: a Bow Pod16). Attaching holds as many IPUs as
the model needs, in this process and against others; detaching lets go of them. On the
IPU model nothing is held.
"""

from __future__ import annotations

import os

from popple.device import Lease, Pod
from popple.errors import DeviceError
from popple.target import System, Target, load_system

from ._errors import Error
from .options import Options

__all__ = [
    "acquire",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "model_target",
    "num_ipus",
    "system",
]

DEFAULT_SYSTEM = "bow-pod16"
MAX_IPUS = 64
_VERSIONS = {"ipu1": 1, "ipu2": 2, "ipu21": 21}


def system() -> System:
    """The system that programs see."""
    return load_system(os.environ.get("POPPLE_TARGET") or DEFAULT_SYSTEM)


def is_ipu_model(options: Options) -> bool:
    """Whether the model runs on the simulator: no device is held."""
    chosen = options._values.get("use_model")
    if chosen is not None:
        return bool(chosen)
    return any(
        os.environ.get(name, "0") not in ("", "0")
        for name in ("POPTORCH_IPU_MODEL", "POPTORCH_SMALL_IPU_MODEL")
    )


def num_ipus(ipus_per_replica: int, options: Options) -> int:
    """IPUs to hold for all replicas: a power of two, rounded up if that is allowed."""
    wanted = ipus_per_replica * options.replication_factor
    rounded = 1 << (wanted - 1).bit_length()
    if wanted > MAX_IPUS:
        raise Error(
            f"Too many IPUs requested ({wanted}). Experiments that need more than "
            f"{MAX_IPUS} IPUs must be split over processes: see poptorch.Options()."
            "Distributed."
        )
    if wanted != rounded and not options.auto_round_num_ipus and not is_ipu_model(options):
        raise Error(
            f"The model needs {wanted} IPUs, but only powers of two can be held: "
            f"{rounded} would be reserved. Allow that with "
            "poptorch.Options().autoRoundNumIPUs(True), or use fewer or more IPUs."
        )
    return rounded


def acquire(count: int, options: Options) -> Lease | None:
    """Hold `count` IPUs, or those of the device the user chose; None: IPU model."""
    if is_ipu_model(options):
        return None
    pod = Pod(system())
    chosen = options._values.get("ipu_id")
    try:
        if chosen is None:
            return pod.acquire(num_chips=count)
        device = pod.device(chosen)
        if device.num_chips != count:
            raise DeviceError(
                f"device {chosen} has {device.num_chips} IPUs, the model needs {count}.",
                remedy=f"Devices with {count} IPUs: "
                f"{', '.join(str(d.id) for d in pod.find(count))}.",
            )
        return pod.acquire(id=chosen)
    except DeviceError as error:
        raise Error(f"Failed to acquire {count} IPU(s): {error}") from error


def model_target(ipus_per_replica: int, replicas: int) -> Target:
    """The machine to model: as many chips of the system as the model asks for."""
    return Target(system(), ipus_per_replica, replicas)


def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """Whether the virtual pod has a device with `num_ipus` IPUs."""
    if _env_ipu_model():
        return False
    return bool(Pod(system()).find(num_ipus))


def ipuHardwareVersion() -> int:
    """Version of the virtual pod's IPUs: 1, 2 or 21."""
    return _VERSIONS[system().chip.architecture]


def _env_ipu_model() -> bool:
    return os.environ.get("POPTORCH_IPU_MODEL", "0") not in ("", "0")
