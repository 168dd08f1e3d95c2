"""What happened on the IPU devices, in the order in which it happened.

In: calls by whatever compiles and runs programs. Out: serialised `IpuTraceEvent`
messages, each once, as `ipu_event_trace` hands them out. Events are kept only if the
configuration asks for them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.compiler.plugin.poplar.driver.trace_pb2 import IpuTraceEvent

from . import devices

__all__ = [
    "drain",
    "is_wanted",
    "record_compile",
    "record_execute",
    "record_load",
    "record_transfer",
]


class EventLog:
    """Events that nobody has fetched yet. `clock` gives seconds since the epoch."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._events: list[Any] = []

    def add(self, kind: str, ordinal: int, field: str, **contents: Any) -> None:
        """Note an event: its type, its device, and the message that belongs to it."""
        event = IpuTraceEvent(
            timestamp=self._clock(),
            ordinal=ordinal,
            type=IpuTraceEvent.Type.Value(kind),
        )
        message = getattr(event, field)
        # Present even if all its fields have their defaults.
        message.SetInParent()
        for name, value in contents.items():
            setattr(message, name, value)
        with self._lock:
            self._events.append(event)

    def drain(self) -> list[bytes]:
        """All events, serialised; the log is empty afterwards."""
        with self._lock:
            events, self._events = self._events, []
        return [event.SerializeToString() for event in events]


_LOG = EventLog()


def is_wanted(ordinal: int) -> bool:
    """Whether the configuration of a device asks for events."""
    return devices.get_options(ordinal).profiling.enable_ipu_trace_events


def record_compile(
    name: str,
    ordinal: int = 0,
    *,
    duration_us: int = 0,
    tensor_map: str = "",
    instruction_info: str = "",
) -> None:
    """A program was compiled; the texts are JSON."""
    if not is_wanted(ordinal):
        return
    module = name.encode()
    _LOG.add("COMPILE_BEGIN", ordinal, "compile_begin", module_name=module)
    _LOG.add(
        "COMPILE_END",
        ordinal,
        "compile_end",
        module_name=module,
        duration=duration_us,
        tensor_map=tensor_map.encode(),
        instruction_info=instruction_info.encode(),
    )


def record_load(name: str, ordinal: int = 0) -> None:
    """A program took the place of another on its device."""
    if is_wanted(ordinal):
        _LOG.add("LOAD_ENGINE", ordinal, "load_engine", module_name=name.encode())


def record_execute(name: str, ordinal: int = 0) -> None:
    """A program was run."""
    if is_wanted(ordinal):
        _LOG.add("EXECUTE", ordinal, "execute", module_name=name.encode())


def record_transfer(direction: str, names: Sequence[str], ordinal: int = 0) -> None:
    """Tensors went one way: HOST_TO_DEVICE or DEVICE_TO_HOST."""
    if is_wanted(ordinal):
        text = json.dumps({"tensors": [{"name": name} for name in names]})
        kind = f"{direction}_TRANSFER"
        _LOG.add(kind, ordinal, "data_transfer", data_transfer=text.encode())


def drain() -> list[bytes]:
    """All events since the last call, as serialised `IpuTraceEvent` messages."""
    return _LOG.drain()
