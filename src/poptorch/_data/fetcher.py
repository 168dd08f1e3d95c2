"""The loading process of an `AsynchronousDataAccessor`.

It iterates over the dataset ahead of the program and writes elements into free slots
of shared memory. Commands come in and events go out through two pipes:

| command | meaning | event | meaning |
|---|---|---|---|
| START | fetch; begin an epoch if none is open | READY | layout and slots |
| RESTART | forget all, begin an epoch | ITEM | a slot is full |
| RELEASE | a slot is free again | END | the epoch is over |
| SHUTDOWN | end | FAILED | a traceback |

A generation number, raised by RESTART, tells old events from new ones.
"""

from __future__ import annotations

import enum
import multiprocessing
import os
import pickle
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .._errors import Error
from .._logging import logger
from .ring import Layout, SlotRing

__all__ = ["Command", "Event", "FetchConfig", "Signal", "fetch", "fetch_forked"]


class Signal(enum.Enum):
    """What a command or event is about; see the table above."""

    START = "start"
    RESTART = "restart"
    RELEASE = "release"
    SHUTDOWN = "shutdown"
    READY = "ready"
    ITEM = "item"
    END = "end"
    FAILED = "failed"


class Command(NamedTuple):
    """Sent to the loading process."""

    signal: Signal
    generation: int = 0
    slot: int = 0


class Event(NamedTuple):
    """Sent by the loading process."""

    signal: Signal
    generation: int = 0
    slot: int = 0
    num_rows: int | None = None
    content: Any = None


@dataclass(frozen=True)
class FetchConfig:
    """What to load and how; `dataset` may be the file it was written to.

    `start_method` is how the program itself starts processes, None for the default.
    """

    dataset: Any
    num_slots: int
    rebatched_size: int | None
    load_indefinitely: bool
    early_preload: bool
    start_method: str | None


def fetch(config: FetchConfig, events: Any, commands: Any) -> None:
    """Body of the loading process."""
    logger.debug("AsynchronousDataAccessor worker process: %d", os.getpid())
    # Else the loader's own workers would be started the slow way this process was.
    multiprocessing.set_start_method(config.start_method, force=True)
    try:
        _Fetcher(config, events, commands).run()
    except KeyboardInterrupt:
        # Ctrl-C reaches the whole process group; the program reports it.
        logger.debug("AsynchronousDataAccessor worker: interrupted")
    except Exception:  # whatever a data set raises: the program is told, as text
        events.send(Event(Signal.FAILED, content=traceback.format_exc()))
        raise


def fetch_forked(config: FetchConfig, events: Any, commands: Any) -> None:
    """The same in a forked process, which has not the threads torch believes in."""
    torch.set_num_threads(1)
    fetch(config, events, commands)


class _Fetcher:
    """State of the loading process: an open epoch and the free slots."""

    def __init__(self, config: FetchConfig, events: Any, commands: Any) -> None:
        self._config = config
        self._events = events
        self._commands = commands
        self._dataset = _loaded(config.dataset)
        self._keeps_rest = not getattr(self._dataset, "rebatched_drop_last", True)
        self._iterator: Iterator[Any] | None = iter(self._dataset)
        first = next(self._iterator, None)
        if first is None:
            raise Error("The dataset is empty.")
        self._layout = Layout.of(first)
        self._pending: list[torch.Tensor] | None = self._layout.take_apart(first)
        self._ring = SlotRing.allocate(
            self._pending, config.num_slots, config.rebatched_size
        )
        self._free = deque(range(config.num_slots))
        self._num_rows = 0
        self._num_published = 0
        self._generation = 0
        self._is_fetching = config.early_preload
        self._is_open = True

    def run(self) -> None:
        """Send what the program needs to know, then fetch until told to stop."""
        self._send(Signal.READY, content=(self._layout, self._ring))
        self._fetch_one()
        while self._is_open:
            can_fetch = self._is_fetching and bool(self._free)
            if not can_fetch or self._commands.poll():
                self._obey_next()
            else:
                self._fetch_one()

    def _send(
        self, signal: Signal, slot: int = 0, num_rows: int | None = None, **rest: Any
    ) -> None:
        self._events.send(Event(signal, self._generation, slot, num_rows, **rest))

    def _obey_next(self) -> None:
        """Wait for a command and obey it; a dead program counts as SHUTDOWN."""
        parent = parent_process()
        sentinels = [parent.sentinel] if parent is not None else []
        ready = connection.wait([self._commands, *sentinels])
        if self._commands not in ready:
            self._is_open = False
            return
        try:
            command: Command = self._commands.recv()
        except EOFError:
            command = Command(Signal.SHUTDOWN)
        self._obey(command)

    def _obey(self, command: Command) -> None:
        if command.signal is Signal.SHUTDOWN:
            self._is_open = False
        elif command.signal is Signal.START:
            self._is_fetching = True
            if self._iterator is None:
                self._begin_epoch()
        elif command.signal is Signal.RESTART:
            self._restart(command.generation)
        elif command.generation == self._generation:
            self._free.append(command.slot)

    def _restart(self, generation: int) -> None:
        self._generation = generation
        self._free = deque(range(self._ring.num_slots))
        self._ring.indices_mem.fill_(False)
        self._is_fetching = True
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._num_rows = self._num_published = 0
        self._pending = None
        self._iterator = None  # ends the old one's processes before new ones start
        self._iterator = iter(self._dataset)

    def _fetch_one(self) -> None:
        tensors = self._pending or self._next_tensors()
        self._pending = None
        if tensors is None:
            self._end_epoch()
        elif self._config.rebatched_size is None:
            self._ring.write(self._free[0], tensors)
            self._publish(None)
        else:
            self._append_rows(tensors, self._config.rebatched_size)

    def _next_tensors(self) -> list[torch.Tensor] | None:
        assert self._iterator is not None
        for element in self._iterator:
            return self._layout.take_apart(element)
        return None

    def _append_rows(self, tensors: list[torch.Tensor], size: int) -> None:
        taken = self._ring.write_rows(self._free[0], self._num_rows, tensors)
        self._num_rows += taken
        if taken < len(tensors[0]):
            self._pending = [tensor[taken:] for tensor in tensors]
        if self._num_rows == size:
            self._publish(None)
            self._num_rows = 0

    def _publish(self, num_rows: int | None) -> None:
        slot = self._free.popleft()
        self._ring.indices_mem[slot] = True
        self._num_published += 1
        self._send(Signal.ITEM, slot, num_rows)

    def _end_epoch(self) -> None:
        if self._num_rows and self._keeps_rest:
            self._publish(self._num_rows)
        had_elements = self._num_published > 0
        self._send(Signal.END)
        # An epoch without elements would be repeated for ever.
        if self._config.load_indefinitely and had_elements:
            self._begin_epoch()
        else:
            self._iterator = None
            self._is_fetching = False


def _loaded(dataset: Any) -> Any:
    """The dataset; if it is a path, the file the program has just written it to."""
    if isinstance(dataset, Path):
        return pickle.loads(dataset.read_bytes())
    return dataset
