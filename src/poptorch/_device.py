"""The virtual machine that models attach to.

`popple.device.find_machine` says which one (default: a Bow Pod16 that never blocks,
unless POPTORCH_WAIT_FOR_IPU asks to wait for what other programs hold).
Attaching holds as many IPUs as the model needs, in this process and against others;
detaching lets go of them. On the IPU model nothing is held.
"""

from __future__ import annotations

import gc
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from popple.device import Device, Lease, Pod, find_machine
from popple.errors import DeviceBusyError, DeviceError
from popple.session.settings import read_settings
from popple.target import System, Target

from ._errors import Error, check
from ._logging import TRACE, logger
from .options import Options

__all__ = [
    "Attachment",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "is_ipu_model",
    "least_ipus",
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
    return _pod().system


def _pod(min_chips: int = 0) -> Pod:
    try:
        machine = find_machine(read_settings().target, min_chips=min_chips)
    except DeviceError as error:
        # A partition or a kind of pod that the environment names and nobody knows.
        raise Error(str(error)) from error
    # Who asks to wait takes turns with others: a copy of the machine is always free.
    return Pod(machine.without_copies() if _environment_says_wait() else machine)


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


def least_ipus(ipus_per_replica: int, options: Options) -> int:
    """IPUs to hold for a model that takes at least so many per replica."""
    wanted = ipus_per_replica * options.replication_factor
    return 1 << (wanted - 1).bit_length()


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

    def reserve(self, least: int) -> None:
        """Hold at least so many IPUs while a model is traced.

        A program is refused now, not after half a minute of tracing. `hold` says how
        many IPUs it really takes. Nothing is logged: programs look for one line.
        """
        if is_ipu_model(self._options):
            return
        pod = _pod()
        with _acquiring(pod, least):
            if self._chosen is not None:
                least = pod.device(self._chosen).num_chips
            # What no device has is refused by `hold`, which knows the true number.
            if pod.find(least):
                self._lease = self._acquire(pod, least)

    def hold(self, count: int) -> None:
        """Hold `count` IPUs, or those of the device the user chose.

        What `reserve` took is kept, or exchanged for a device of the right size.
        """
        if not is_ipu_model(self._options):
            pod = _pod()
            with _acquiring(pod, count):
                self._lease = self._keep_or_acquire(pod, count)
            _log_acquired(count, self._lease.device)
            logger.log(TRACE, "Attached to device %d", self._lease.device.id)
        self.is_held = True

    def choose(self, count: int) -> None:
        """Find the device to compile for; someone may hold it."""
        if not is_ipu_model(self._options):
            pod = _pod()
            with _acquiring(pod, count):
                _log_acquired(count, _candidates(pod, count, self._chosen)[0])

    def release(self) -> None:
        """Let others use the IPUs."""
        # A lease exchanged for nothing, because all was busy, has ended already.
        if self._lease is not None and self._lease.is_held:
            self._lease.release()
        self._lease = None
        self.is_held = False
        logger.debug("Detached from device")

    @property
    def has_ipus(self) -> bool:
        """Whether IPUs are held or reserved; on the IPU model, as if they were."""
        return self._lease is not None or self.is_held

    def running(self) -> AbstractContextManager[None]:
        """A program runs inside the block: others see the IPUs as busy."""
        return nullcontext() if self._lease is None else self._lease.activity.running()

    @property
    def _chosen(self) -> int | None:
        return self._options._values.get("ipu_id")

    def _keep_or_acquire(self, pod: Pod, count: int) -> Lease:
        reserved = self._lease
        if reserved is not None and reserved.is_held:
            _candidates(pod, count, self._chosen)
            if reserved.device.num_chips == count:
                return reserved
        return self._acquire(pod, count)

    def _acquire(self, pod: Pod, count: int) -> Lease:
        _candidates(pod, count, self._chosen)  # refuses what will never be free
        for attempt in itertools.count():
            try:
                # What was reserved is given up at the first try: two models that wait
                # for more while they keep some would wait for each other.
                return pod.acquire(
                    num_chips=count, id=self._chosen, instead_of=self._lease
                )
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


def model_target(
    ipus_per_replica: int, replicas: int, is_spread: bool = False
) -> Target:
    """The machine to model: as many chips of the system as the model asks for.

    Replicas that are spread over processes may need several such systems, which are
    modelled as the next larger one.
    """
    least = ipus_per_replica * replicas if is_spread else 0
    return Target(_pod(least).system, ipus_per_replica, replicas)


def poptorchAtExit() -> None:
    """What programs call before they end. IPUs are let go of with the process."""


def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """Whether the virtual pod has a device with `num_ipus` IPUs."""
    return not _environment_says_model() and bool(_pod().find(num_ipus))


def ipuHardwareVersion() -> int:
    """Version of the virtual pod's IPUs: 1, 2 or 21."""
    check(
        not _environment_says_model(),
        "There is no IPU: POPTORCH_IPU_MODEL asks for the IPU model. Unset it.",
    )
    return _VERSIONS[system().chip.architecture]
