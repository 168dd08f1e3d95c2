"""The virtual pod that models attach to.

POPPLE_TARGET names the system (default: a Bow Pod16). Attaching holds as many IPUs as
the model needs, in this process and against others; detaching lets go of them. On the
IPU model nothing is held.
"""

from __future__ import annotations

import gc
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from popple.device import Device, Lease, Pod
from popple.errors import DeviceBusyError, DeviceError
from popple.session.settings import DEFAULT_TARGET, read_settings
from popple.target import System, Target, load_system

from ._errors import Error, check
from ._logging import TRACE, logger
from .options import Options

__all__ = [
    "Attachment",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "is_ipu_model",
    "model_target",
    "num_ipus",
    "poptorchAtExit",
    "system",
]

MAX_IPUS = 64
_SECONDS_BETWEEN_TRIES = 1.0
_VERSIONS = {"ipu1": 1, "ipu2": 2, "ipu21": 21}


def system() -> System:
    """The system that programs see."""
    return load_system(read_settings().target or DEFAULT_TARGET)


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


class Attachment:
    """The hold of one model on its IPUs, from `hold` to `release`.

    `wait` is called between tries while others hold the IPUs, if the environment asks
    for waiting.
    """

    def __init__(
        self, options: Options, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self.is_held = False
        self._options = options
        self._wait = wait
        self._lease: Lease | None = None

    def hold(self, count: int) -> None:
        """Hold `count` IPUs, or those of the device the user chose."""
        if not is_ipu_model(self._options):
            pod = Pod(system())
            with _acquiring(pod, count):
                self._lease = self._acquire(pod, count)
            _log_acquired(count, self._lease.device)
            logger.log(TRACE, "Attached to device %d", self._lease.device.id)
        self.is_held = True

    def choose(self, count: int) -> None:
        """Find the device to compile for; someone may hold it."""
        if not is_ipu_model(self._options):
            pod = Pod(system())
            with _acquiring(pod, count):
                _log_acquired(count, _candidates(pod, count, self._chosen)[0])

    def release(self) -> None:
        """Let others use the IPUs."""
        if self._lease is not None:
            self._lease.release()
        self._lease = None
        self.is_held = False
        logger.debug("Detached from device")

    @property
    def _chosen(self) -> int | None:
        return self._options._values.get("ipu_id")

    def _acquire(self, pod: Pod, count: int) -> Lease:
        _candidates(pod, count, self._chosen)  # refuses what will never be free
        for attempt in itertools.count():
            try:
                return pod.acquire(num_chips=count, id=self._chosen)
            except DeviceBusyError:
                if attempt and not _environment_says_wait():
                    raise
            if attempt == 0:
                # Models that nobody refers to any more may still hold IPUs.
                gc.collect()
                continue
            logger.log(TRACE, "No IPU available, sleeping")
            self._wait(_SECONDS_BETWEEN_TRIES)
        raise AssertionError("unreachable")


def _log_acquired(count: int, device: Device) -> None:
    logger.log(TRACE, "Acquired %d IPU(s): running on device Id %d", count, device.id)


def _candidates(pod: Pod, count: int, chosen: int | None) -> tuple[Device, ...]:
    """The devices a model of `count` IPUs may run on; at least one."""
    if chosen is None:
        return pod.candidates(count)
    device = pod.device(chosen)
    if device.num_chips != count:
        ids = ", ".join(str(other.id) for other in pod.find(count))
        raise DeviceError(
            f"device {chosen} has {device.num_chips} IPUs, the model needs {count}.",
            remedy=f"Devices with {count} IPUs: {ids or 'none'}.",
        )
    return (device,)


@contextmanager
def _acquiring(pod: Pod, count: int) -> Iterator[None]:
    """Say what for and where, when IPUs cannot be held."""
    try:
        yield
    except DeviceError as error:
        raise Error(
            f"Failed to acquire {count} IPU(s): {error} The system is "
            f"{pod.system.name}; POPPLE_TARGET names another."
        ) from error


def _environment_says_wait() -> bool:
    return os.environ.get("POPTORCH_WAIT_FOR_IPU", "0") not in ("", "0")


def model_target(ipus_per_replica: int, replicas: int) -> Target:
    """The machine to model: as many chips of the system as the model asks for."""
    return Target(system(), ipus_per_replica, replicas)


def poptorchAtExit() -> None:
    """What programs call before they end. IPUs are let go of with the process."""


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
