"""Trace events as text and messages, as programs of older releases read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tensorflow.compiler.plugin.poplar.driver.trace_pb2 import IpuTraceEvent
from tensorflow.python.util import deprecation

from tensorflow_ipu._types import Message

_Event = IpuTraceEvent
_RULE = "-" * 70

# Type of event -> what is said about it.
_TEXTS: Mapping[int, Callable[[Any], str]] = {
    _Event.COMPILE_BEGIN: lambda e: f"Compile begin: {_name(e.compile_begin)}",
    _Event.COMPILE_END: lambda e: (
        f"Compile end: {_name(e.compile_end)}\nDuration: {e.compile_end.duration} us"
    ),
    _Event.HOST_TO_DEVICE_TRANSFER: lambda e: f"Host to device: {_data(e)}",
    _Event.DEVICE_TO_HOST_TRANSFER: lambda e: f"Device to host: {_data(e)}",
    _Event.LOAD_ENGINE: lambda e: f"Load engine: {_name(e.load_engine)}",
    _Event.EXECUTE: lambda e: f"Execute: {_name(e.execute)}",
}

_no_reports = deprecation.deprecated(
    None,
    "Events contain no reports any more. Ask for a report with the engine option "
    "autoReport.all and open it with `popple view` or pva.",
)


def _name(message: Message) -> str:
    return message.module_name.decode()


def _data(event: Message) -> str:
    return event.data_transfer.data_transfer.decode()


def extract_all_events(events: Iterable[bytes]) -> list[Any]:
    """The messages that `ipu_event_trace` returned serialised."""
    return [_Event.FromString(event) for event in events]


def extract_all_types_from_event_trace(events: Iterable[bytes]) -> list[int]:
    """The type of each event."""
    return [event.type for event in extract_all_events(events)]


def extract_all_strings_from_event_trace(events: Iterable[bytes]) -> str:
    """All events as text, each under a rule with its time."""
    return "".join(_render(event) for event in extract_all_events(events))


def _render(event: Message) -> str:
    moment = time.strftime("%F %T %z", time.localtime(event.timestamp))
    return f"{_RULE}\n{moment}\n{_TEXTS[event.type](event)}\n"


@_no_reports
def extract_compile_reports(events: Iterable[bytes]) -> list[Any]:
    """Nothing: events contain no reports any more."""
    return []


@_no_reports
def extract_execute_reports(events: Iterable[bytes]) -> list[Any]:
    """Nothing: events contain no reports any more."""
    return []


@_no_reports
def extract_poplar_serialized_graphs(events: Iterable[bytes]) -> list[Any]:
    """Nothing: events contain no graphs any more."""
    return []
