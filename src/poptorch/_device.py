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

from ._errors import Error, check
from .options import Options

__all__ = [
    "acquire",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "is_ipu_model",
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
    return _environment_says_model() if chosen is None else bool(chosen)


def _environment_says_model() -> bool:
    names = ("POPTORCH_IPU_MODEL", "POPTORCH_SMALL_IPU_MODEL")
    return any(os.environ.get(name, "0") not in ("", "0") for name in names)


def num_ipus(ipus_per_replica: int, options: Options) -> int:
    """IPUs to hold for all replicas: a power of two, rounded up if that is allowed."""
    wanted = ipus_per_replica * options.replication_factor
    if wanted > MAX_IPUS:
        raise Error(
            f"Too many IPUs requested ({wanted}). Experiments that need more than "
            f"{MAX_IPUS} IPUs must be split over processes: see poptorch.Options()."
            "Distributed."
        )
    rounded = 1 << (wanted - 1).bit_length()
    may_round = options.auto_round_num_ipus or is_ipu_model(options)
    if wanted != rounded and not may_round:
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
    try:
        return _acquire_from(pod, count, options._values.get("ipu_id"))
    except DeviceError as error:
        raise Error(
            f"Failed to acquire {count} IPU(s): {error} The system is "
            f"{pod.system.name}; POPPLE_TARGET names another."
        ) from error


def _acquire_from(pod: Pod, count: int, chosen: int | None) -> Lease:
    if chosen is None:
        return pod.acquire(num_chips=count)
    device = pod.device(chosen)
    if device.num_chips != count:
        ids = ", ".join(str(other.id) for other in pod.find(count))
        raise DeviceError(
            f"device {chosen} has {device.num_chips} IPUs, the model needs {count}.",
            remedy=f"Devices with {count} IPUs: {ids or 'none'}.",
        )
    return pod.acquire(id=chosen)


def model_target(ipus_per_replica: int, replicas: int) -> Target:
    """The machine to model: as many chips of the system as the model asks for."""
    return Target(system(), ipus_per_replica, replicas)


def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """Whether the virtual pod has a device with `num_ipus` IPUs."""
    return not _environment_says_model() and bool(Pod(system()).find(num_ipus))


def ipuHardwareVersion() -> int:
    """Version of the virtual pod's IPUs: 1, 2 or 21."""
    check(
        not _environment_says_model(),
        "There is no IPU: POPTORCH_IPU_MODEL asks for the IPU model. Unset it.",
    )
    return _VERSIONS[system().chip.architecture]
