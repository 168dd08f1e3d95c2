"""Trace points: what a thread does from when to when."""

from __future__ import annotations

from types import TracebackType

from libpvti._channels import TraceChannel
from libpvti._tracing import TRACING

__all__ = ["Tracepoint"]


class Tracepoint:
    """A context that is one event; `begin` and `end` do the same without a context."""

    def __init__(self, channel: TraceChannel, label: str) -> None:
        self._channel = channel
        self._label = label

    def __enter__(self) -> Tracepoint:
        self.begin(self._channel, self._label)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(self._channel, self._label)

    @staticmethod
    def begin(channel: TraceChannel, label: str) -> None:
        """Something begins in this thread."""
        if channel.is_traced:
            TRACING.session.begin(channel.name, label)

    @staticmethod
    def end(channel: TraceChannel, label: str) -> None:
        """What began under the same label ends."""
        if channel.is_traced:
            TRACING.session.end(channel.name, label)

    @staticmethod
    def event(channel: TraceChannel, label: str) -> None:
        """Something happens and takes no time."""
        if channel.is_traced:
            TRACING.session.event(channel.name, label)
