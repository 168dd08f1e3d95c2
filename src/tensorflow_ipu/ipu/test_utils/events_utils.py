"""Trace events in tests: turn them on, read them."""

from __future__ import annotations

from typing import Any

from tensorflow_ipu._types import IpuOptions

from .._device.old_trace_events import (
    extract_all_events,
    extract_all_strings_from_event_trace,
    extract_all_types_from_event_trace,
)

__all__ = [
    "enable_ipu_events",
    "extract_all_events",
    "extract_all_strings_from_event_trace",
    "extract_all_types_from_event_trace",
]


def enable_ipu_events(ipu_config: Any) -> None:
    """Let this configuration ask for trace events, which no attribute of it does."""
    make = ipu_config._create_protobuf

    def make_traced() -> IpuOptions:
        options = make()
        options.profiling.enable_ipu_trace_events = True
        options.profiling.enable_compilation_trace = True
        options.profiling.enable_io_trace = True
        return options

    # A configuration refuses names it does not know, so it must not be asked.
    object.__setattr__(ipu_config, "_create_protobuf", make_traced)
