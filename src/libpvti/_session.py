"""The trace of a process that is traced: a buffer in front of its file.

    trace points, samples, histograms --Session--> batches --TraceWriter--> file

Imported only once something is to be written, so that programs that are not traced
do not pay for it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from multiprocessing.util import Finalize

from libpvti._options import Options
from popple.trace import (
    Batch,
    Heatmap,
    Histogram,
    Kind,
    Sample,
    Series,
    TracePoint,
    TraceWriter,
)

__all__ = ["Session", "file_name"]

_MAX_BUFFERED = 10_000
_MAX_AGE_NS = 1_000_000_000


class Session:
    """Writes what is traced once a second, when much has come together, and at the end.

    The file is there from the beginning; a program that is killed loses a second.
    """

    def __init__(self, options: Options) -> None:
        self._lock = threading.Lock()
        self._entries: list[TracePoint | Sample | Histogram] = []
        self._threads: dict[int, str] = {}
        self._written_ns = self._started_ns = time.monotonic_ns()
        self._limit_ns = int(options.duration_seconds * 1e9)
        self._is_open = True
        self._writer = TraceWriter(
            options.directory / file_name(time.localtime(), os.getpid()),
            process_id=os.getpid(),
            command=" ".join(sys.argv),
            epoch_ns=time.time_ns() - self._started_ns,
        )
        self.path = self._writer.path
        # Called at the end of worker processes too, which run no other exit hooks.
        Finalize(None, self.close, exitpriority=0)

    def begin(self, channel: str, label: str) -> None:
        """Something begins in the calling thread."""
        self._add_point(Kind.BEGIN, channel, label)

    def end(self, channel: str, label: str) -> None:
        """What began under this label ends."""
        self._add_point(Kind.END, channel, label)

    def event(self, channel: str, label: str) -> None:
        """Something happens and takes no time."""
        self._add_point(Kind.INSTANT, channel, label)

    def _add_point(self, kind: Kind, channel: str, label: str) -> None:
        now = time.monotonic_ns()
        thread = threading.current_thread()
        number = thread.native_id or 0
        self._threads.setdefault(number, thread.name)
        self._add(TracePoint(now, number, kind, channel, label))

    def add_sample(self, series: Series, value: float) -> None:
        """A figure of a series."""
        self._add(Sample(series, time.monotonic_ns(), value))

    def add_histogram(
        self, heatmap: Heatmap, counts: tuple[int, ...], num_outside: int
    ) -> None:
        """The counts of a heatmap."""
        self._add(Histogram(heatmap, time.monotonic_ns(), counts, num_outside))

    def _add(self, entry: TracePoint | Sample | Histogram) -> None:
        now = entry.time_ns
        if self._limit_ns and now - self._started_ns > self._limit_ns:
            return
        with self._lock:
            self._entries.append(entry)
            is_old = now - self._written_ns >= _MAX_AGE_NS
            if is_old or len(self._entries) >= _MAX_BUFFERED:
                self._write()

    def close(self) -> None:
        """Write what is left; what comes afterwards is not kept."""
        with self._lock:
            self._write()
            self._is_open = False

    def _write(self) -> None:
        entries, self._entries = self._entries, []
        self._written_ns = time.monotonic_ns()
        if not self._is_open or not entries:
            return
        self._writer.append(
            Batch(
                points=[each for each in entries if isinstance(each, TracePoint)],
                samples=[each for each in entries if isinstance(each, Sample)],
                histograms=[each for each in entries if isinstance(each, Histogram)],
                thread_names=dict(self._threads),
            )
        )


def file_name(moment: time.struct_time, process_id: int) -> str:
    """`Thu_Aug_27_09:46:55_2020_BST_2341.pvti`; no colons where files cannot have."""
    text = time.strftime("%a_%b_%d_%H:%M:%S_%Y_%Z", moment).replace(" ", "-")
    text = text.replace(":", "-") if os.name == "nt" else text
    return f"{text}_{process_id}.pvti"
