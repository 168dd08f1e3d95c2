"""The TensorFlow IPU devices of this process: their configuration and their IPUs.

In: an `IpuOptions` message. Out: how many IPUs `/device:IPU:n` has, and a lease on them
on the virtual pod, so that no other program uses them at the same time. A device that
nobody configured has one IPU and attaches when something runs on it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tensorflow.compiler.plugin.poplar.driver import config_pb2
from tensorflow.python.framework import device as device_lib
from tensorflow.python.framework import errors
from tensorflow.python.platform import tf_logging as logging

from popple.device import Device, Lease
from popple.errors import DeviceBusyError, DeviceError, PoppleError
from popple.session import poplar_options
from popple.target import System
from tensorflow_ipu._types import IpuOptions, Message

from . import poplar_flags, virtual_pod

__all__ = [
    "attach",
    "configure",
    "configured",
    "connection_type",
    "forget_programs",
    "get_options",
    "list_options",
    "num_ipus",
    "num_ipus_of_all_processes",
    "on_configured",
    "on_reset",
    "ordinal_of",
    "reset",
    "running",
    "system",
    "use_ipu_model",
]

_Connection = config_pb2.IpuDeviceConnectionType
_ALWAYS = _Connection.Value("ALWAYS")
_ON_DEMAND = _Connection.Value("ON_DEMAND")
_PRE_COMPILE = _Connection.Value("PRE_COMPILE")
_NEVER = _Connection.Value("NEVER")
_MIN_POLL_MS = 100
# What the names of options of Poplar's engine begin with.
_ENGINE_OPTIONS = sorted({name.partition(".")[0] for name in poplar_options.ENGINE})


class Devices:
    """All `/device:IPU:n` of a process. `wait` passes the given seconds."""

    def __init__(
        self,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wait = wait
        self._clock = clock
        # Re-entrant: `configure` resets while it holds the lock.
        self._lock = threading.RLock()
        self._options: Any = None
        self._leases: dict[int, Lease] = {}
        self._listeners: list[Callable[[], None]] = []
        self._followers: list[Callable[[], None]] = []

    def configure(self, options: IpuOptions) -> None:
        """Bring a configuration into force; attach if it says so."""
        _check_creator(options)
        options = _with_flags(options)
        with self._lock:
            # Programs configure in every cell of a notebook, with the same options.
            if self._options == options:
                return
            if self._options is not None:
                self._check_replaceable()
            # Devices may have attached before they were configured.
            self.reset()
            self._options = options
            try:
                self._open(options)
            except (errors.OpError, PoppleError):
                self._release()
                self._options = None
                raise
            for follower in tuple(self._followers):
                follower()

    def _check_replaceable(self) -> None:
        if self._options.device_config:
            raise errors.FailedPreconditionError(
                None,
                None,
                "The IPU system has already been configured in this process, in "
                "another way. Call reset_ipu_configuration() first, or configure it "
                "with reset_configuration=True.",
            )

    def _open(self, options: IpuOptions) -> None:
        for ordinal in range(max(1, len(options.device_config))):
            self._check_exists(ordinal)
            if options.device_connection_type == _ALWAYS:
                self._hold(ordinal)

    def _check_exists(self, ordinal: int) -> None:
        if use_ipu_model() or self.connection_type(ordinal) in (_PRE_COMPILE, _NEVER):
            return
        if virtual_pod.find_pod() is None:
            raise errors.InvalidArgumentError(
                None,
                None,
                "There are no IPUs (TF_IPU_COUNT is 0) and the IPU Model is not used. "
                "Set TF_POPLAR_FLAGS=--use_ipu_model.",
            )
        count = self.num_ipus(ordinal)
        size = virtual_pod.find_size(count)
        if size is None:
            raise errors.FailedPreconditionError(
                None,
                None,
                f"Unsupported number of IPUs requested: no device has {count}, as "
                f"/device:IPU:{ordinal} should. See `gc-info -l` for those there are.",
            )
        if size != count:
            # Every number up to all of them may be chosen; pods join powers of two.
            logging.log_first_n(
                logging.WARN,
                "/device:IPU:%d has %d of the IPUs of a device of %d, since no device "
                "has that many. A pod in a rack would refuse the number.",
                1,
                ordinal,
                count,
                size,
            )

    def reset(self) -> None:
        """Let go of all IPUs and forget the configuration."""
        with self._lock:
            self._release()
            self._options = None
            self.forget_programs()

    def _release(self) -> None:
        for lease in self._leases.values():
            if lease.is_held:
                lease.release()
        self._leases.clear()

    def list_options(self) -> list[Any]:
        """The configuration, once for each device it makes."""
        if self._options is None:
            return []
        return [self._options] * max(1, len(self._options.device_config))

    def get_options(self, ordinal: int) -> IpuOptions:
        """The configuration of a device; a default one if it is not configured."""
        found = self.list_options()
        return found[ordinal] if ordinal < len(found) else config_pb2.IpuOptions()

    def connection_type(self, ordinal: int) -> int:
        """When the device attaches; one that is not configured does when it runs."""
        if ordinal < len(self.list_options()):
            return self.get_options(ordinal).device_connection_type
        return _ALWAYS

    def num_ipus(self, ordinal: int) -> int:
        """IPUs of a device in this process."""
        wanted = self._selection(ordinal)
        if wanted is None:
            return 1
        if wanted.WhichOneof("selection") == "cfg_index":
            return _get_device(wanted.cfg_index).num_chips
        return wanted.auto_count

    def _selection(self, ordinal: int) -> Message | None:
        """The entry of `device_config` for a device; None if there is none."""
        chosen = self.get_options(ordinal).device_config
        return chosen[ordinal] if ordinal < len(chosen) else None

    def attach(self, ordinal: int) -> None:
        """Make sure that something can run on a device, and hold its IPUs."""
        for flag in self.get_options(ordinal).compilation_options:
            if flag.option.partition(".")[0] not in _ENGINE_OPTIONS:
                raise errors.InternalError(
                    None,
                    None,
                    f"Unrecognised option '{flag.option}' in "
                    "compilation_poplar_options. Options of the engine begin with one "
                    f"of: {', '.join(f'{group}.' for group in _ENGINE_OPTIONS)}",
                )
        self._hold(ordinal)

    def _hold(self, ordinal: int) -> None:
        """Hold the IPUs of a device, if it is not on the model and holds none yet."""
        with self._lock:
            lease = self._leases.get(ordinal)
            if use_ipu_model() or (lease is not None and lease.is_held):
                return
            connection = self.connection_type(ordinal)
            if connection == _NEVER:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"/device:IPU:{ordinal} is configured for compilation only: its "
                    "device_connection.type is NEVER, so nothing can run on it.",
                )
            if connection != _PRE_COMPILE:
                self._take(ordinal, connection == _ON_DEMAND)

    def _take(self, ordinal: int, patient: bool) -> None:
        self._check_exists(ordinal)
        lease = self._acquire(ordinal, patient)
        self._leases[ordinal] = lease
        virtual_pod.log_attached(ordinal, lease.device)

    def _acquire(self, ordinal: int, patient: bool) -> Lease:
        flags = poplar_flags.read()
        deadline = self._clock() + flags.on_demand_device_timeout / 1000
        while True:
            try:
                return self._try_acquire(ordinal)
            except DeviceBusyError as error:
                # Only ON_DEMAND waits for others; ALWAYS is an error at once, as on the
                # machine.
                if not patient or self._clock() >= deadline:
                    raise self._make_busy_error(ordinal, error) from error
            self._wait(max(flags.on_demand_device_poll_time, _MIN_POLL_MS) / 1000)

    def _try_acquire(self, ordinal: int) -> Lease:
        pod = virtual_pod.find_pod()
        assert pod is not None
        wanted = self._selection(ordinal)
        if wanted is not None and wanted.WhichOneof("selection") == "cfg_index":
            return pod.acquire(id=wanted.cfg_index)
        return pod.acquire(num_chips=virtual_pod.find_size(self.num_ipus(ordinal)))

    def _make_busy_error(self, ordinal: int, cause: DeviceError) -> errors.OpError:
        count = self.num_ipus(ordinal)
        return errors.InternalError(
            None,
            None,
            f"Could not attach /device:IPU:{ordinal}, which is expected to have "
            f"{count} IPU(s): {cause} See `gc-monitor` for who uses what.",
        )

    def running(self, ordinal: int) -> AbstractContextManager[None]:
        """A program runs inside the block: others see the device's IPUs as busy."""
        lease = self._leases.get(ordinal)
        return nullcontext() if lease is None else lease.activity.running()

    def on_reset(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever the configuration or the programs are forgotten."""
        self._listeners.append(callback)

    def on_configured(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a new configuration is in force."""
        self._followers.append(callback)

    def forget_programs(self) -> None:
        """Tell the listeners to forget what they know about programs."""
        for listener in tuple(self._listeners):
            listener()

    def system(self, ordinal: int) -> System:
        """The machine that a device is a part of: the pod, or what the model models."""
        options = self.get_options(ordinal)
        if not use_ipu_model():
            is_offline = self.connection_type(ordinal) in (_PRE_COMPILE, _NEVER)
            return virtual_pod.find_system(options.ipu_version if is_offline else "")
        model = options.ipu_model_config
        tiles = model.tiles_per_ipu or poplar_flags.read().ipu_model_tiles
        return virtual_pod.find_model(model.ipu_model_version, tiles)


def _check_creator(options: IpuOptions) -> None:
    if options.creator_id != config_pb2.IpuOptionsCreator.Value("IPU_UTILS"):
        raise errors.InvalidArgumentError(
            None,
            None,
            "These IpuOptions were not made by tensorflow.python.ipu.config.IPUConfig, "
            "so most of them are unset. Configure the system with an IPUConfig.",
        )


def _with_flags(options: IpuOptions) -> IpuOptions:
    """A copy of the options, with what TF_POPLAR_FLAGS overrides."""
    copied = config_pb2.IpuOptions()
    copied.CopyFrom(options)
    if poplar_flags.read().use_on_demand:
        copied.device_connection_type = _ON_DEMAND
    return copied


def _get_device(id: int) -> Device:
    try:
        return virtual_pod.get_device(id)
    except DeviceError as error:
        raise errors.InvalidArgumentError(None, None, str(error)) from error


_DEVICES = Devices()


def configure(options: IpuOptions) -> None:
    """Bring an `IpuOptions` into force; attach unless it says otherwise."""
    _DEVICES.configure(options)


def reset() -> None:
    """Let go of all IPUs, forget the configuration and tell the listeners."""
    _DEVICES.reset()


def configured(ordinal: int = 0) -> bool:
    """Whether the program configured `/device:IPU:<ordinal>`."""
    return ordinal < len(_DEVICES.list_options())


def list_options() -> list[Any]:
    """The `IpuOptions` in force, once for each device that they make."""
    return _DEVICES.list_options()


def get_options(ordinal: int = 0) -> IpuOptions:
    """The `IpuOptions` of a device; empty ones if it is not configured."""
    return _DEVICES.get_options(ordinal)


def num_ipus(ordinal: int = 0) -> int:
    """IPUs that a device has in this process."""
    return _DEVICES.num_ipus(ordinal)


def num_ipus_of_all_processes(ordinal: int = 0) -> int:
    """IPUs that a device has in all processes that run its program together."""
    num_processes = get_options(ordinal).multi_replica_process_count
    return num_ipus(ordinal) * max(1, num_processes)


def connection_type(ordinal: int = 0) -> int:
    """The `IpuDeviceConnectionType` of a device."""
    return _DEVICES.connection_type(ordinal)


def attach(ordinal: int = 0) -> None:
    """To be called before something runs on a device: holds its IPUs, or raises."""
    _DEVICES.attach(ordinal)


def running(ordinal: int = 0) -> AbstractContextManager[None]:
    """To be entered while something runs on a device: its IPUs are seen as busy."""
    return _DEVICES.running(ordinal)


def use_ipu_model() -> bool:
    """Whether programs run on the IPU Model, which holds no IPUs."""
    return poplar_flags.running_on_ipu_model()


def forget_programs() -> None:
    """Let all programs be compiled again: tells the listeners of `on_reset`."""
    _DEVICES.forget_programs()


def on_reset(callback: Callable[[], None]) -> None:
    """Call `callback` whenever the configuration or the programs are forgotten."""
    _DEVICES.on_reset(callback)


def on_configured(callback: Callable[[], None]) -> None:
    """Call `callback` whenever a new configuration is in force."""
    _DEVICES.on_configured(callback)


def system(ordinal: int = 0) -> System:
    """The machine to model for what runs on a device."""
    return _DEVICES.system(ordinal)


def ordinal_of(name: str) -> int:
    """1 for "/device:IPU:1"; 0 if no device is named."""
    if not name:
        return 0
    try:
        ordinal = device_lib.DeviceSpec.from_string(name).device_index
    except ValueError:
        ordinal = None
    if ordinal is None:
        raise errors.InvalidArgumentError(
            None, None, f"Invalid device name {name!r}. Write '/device:IPU:0'."
        )
    return ordinal
