"""Trace channels: named sources of trace points that are switched on and off."""

from __future__ import annotations

from libpvti._tracing import TRACING

__all__ = [
    "TraceChannel",
    "checkTraceChannel",
    "createTraceChannel",
    "disableTraceChannel",
    "enableTraceChannel",
    "listTraceChannel",
    "traceDrivers",
    "traceFramework",
    "tracePoplar",
]

# Every channel of the process, in the order they were made.
_CHANNELS: list[TraceChannel] = []


class TraceChannel:
    """A source of trace points; PVTI_OPTIONS may name those that are to be on."""

    def __init__(self, name: str, enabled: bool = True) -> None:
        self.name = name
        self.enabled = enabled and TRACING.options.is_wanted(name)
        _CHANNELS.append(self)

    @property
    def is_traced(self) -> bool:
        """Whether what is sent to the channel is written."""
        return TRACING.is_on and self.enabled

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """In another process the channel is that process's own of this name."""
        return createTraceChannel, (self.name,)

    def __repr__(self) -> str:
        state = "enabled" if self.enabled else "disabled"
        return f"<TraceChannel {self.name!r}, {state}>"


def createTraceChannel(name: str) -> TraceChannel:
    """The channel of this name, made if there is none yet."""
    found = (channel for channel in _CHANNELS if channel.name == name)
    return next(found, None) or TraceChannel(name)


def enableTraceChannel(channel: TraceChannel) -> None:
    """Write what is sent to the channel from now on, if the process is traced."""
    channel.enabled = True


def disableTraceChannel(channel: TraceChannel) -> None:
    """Write nothing of what is sent to the channel from now on."""
    channel.enabled = False


def checkTraceChannel(channel: TraceChannel) -> bool:
    """Whether what is sent to the channel is written."""
    return channel.is_traced


def listTraceChannel() -> list[list[str | bool]]:
    """Name and state of every channel, as `[['Drivers', True], ...]`."""
    return [[channel.name, channel.enabled] for channel in _CHANNELS]


traceDrivers = TraceChannel("Drivers")
tracePoplar = TraceChannel("Poplar")
traceFramework = TraceChannel("Framework")
