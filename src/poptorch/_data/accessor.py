"""Loading data in another process: `AsynchronousDataAccessor`.

The program side of `_fetcher`: starts the loading process, asks for elements, and
gives their slots back one step later.
"""

from __future__ import annotations

import atexit
import multiprocessing
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import connection
from pathlib import Path
from typing import Any

import torch.multiprocessing

from .._errors import Error, check
from .._logging import logger
from ..enums import SharingStrategy
from .checks import DEATH_REMEDY
from .fetcher import Command, Event, FetchConfig, Signal, fetch, fetch_forked
from .ring import Layout, SlotRing

__all__ = ["AsynchronousDataAccessor", "AsynchronousWorker"]

_START_METHODS = {
    SharingStrategy.Fork: "fork",
    SharingStrategy.ForkServer: "forkserver",
    SharingStrategy.SharedMemory: "spawn",
    SharingStrategy.FileSystem: "spawn",
}
_SHUTDOWN_SECONDS = 10


class AsynchronousWorker:
    """The loading process, seen from the program.

    States: not started, then in an epoch (with or without an element taken), then
    at its end; `begin_epoch` leads from every state into a fresh epoch.
    """

    def __init__(self, config: FetchConfig, strategy: SharingStrategy) -> None:
        context: Any = torch.multiprocessing.get_context(_START_METHODS[strategy])
        # The server imports torch once, not every process it forks.
        context.set_forkserver_preload(["__main__", fetch.__module__])
        self._events, events = context.Pipe(duplex=False)
        commands, self._commands = context.Pipe(duplex=False)
        self._generation = 0
        self._held_slot: int | None = None
        self._is_in_epoch = False
        self._was_used = False
        with _shared_dataset(config, strategy) as shared:
            self._process = _start_process(context, (shared, events, commands))
            events.close()
            commands.close()
            self._layout, self._data_buffers = self._receive_ready()

    def _receive_ready(self) -> tuple[Layout, SlotRing]:
        event = self._receive()
        if event.signal is Signal.READY:
            return event.content
        self._process.join()
        raise Error(
            "AsynchronousDataAccessor worker thread failed to start. The dataset could "
            f"not be read:\n{event.content}"
        )

    def _receive(self) -> Event:
        """The next event; the death of the process counts as FAILED."""
        ready = connection.wait([self._events, self._process.sentinel])
        died = Event(Signal.FAILED, content=f"the process has died. {DEATH_REMEDY}")
        if self._events not in ready and not self._events.poll():
            return died
        try:
            return self._events.recv()
        except EOFError:
            return died

    def _send(self, signal: Signal, slot: int = 0) -> None:
        # A process that is gone is reported when the next element is asked for.
        with suppress(BrokenPipeError):
            self._commands.send(Command(signal, self._generation, slot))

    def begin_epoch(self) -> None:
        """Make the next element the first one of an epoch."""
        if self._is_in_epoch and not self._was_used:
            return
        if self._is_in_epoch:
            self._generation += 1
            self._held_slot = None
            self._send(Signal.RESTART)
        else:
            self._send(Signal.START)
        self._is_in_epoch, self._was_used = True, False

    def next_element(self) -> Any:
        """The next element of the epoch, or StopIteration at its end."""
        self._release()
        if not self._is_in_epoch:
            raise StopIteration
        event = self._current_event()
        check(
            event.signal is not Signal.FAILED,
            f"An error occurred in the data fetcher:\n{event.content}",
        )
        if event.signal is Signal.END:
            self._is_in_epoch = False
            raise StopIteration
        self._held_slot, self._was_used = event.slot, True
        tensors = self._data_buffers.read(event.slot, event.num_rows)
        return self._layout.put_together(tensors)

    def _current_event(self) -> Event:
        """The next event that is not from before the last restart."""
        while True:
            event = self._receive()
            if event.signal is Signal.FAILED or event.generation == self._generation:
                return event

    def _release(self) -> None:
        if self._held_slot is not None:
            self._data_buffers.indices_mem[self._held_slot] = False
            self._send(Signal.RELEASE, self._held_slot)
            self._held_slot = None

    def terminate(self) -> None:
        """End the process, by force if it does not answer."""
        if self._process.exitcode is not None:
            return  # when the interpreter has gone so far, nothing can be sent
        self._send(Signal.SHUTDOWN)
        self._process.join(timeout=_SHUTDOWN_SECONDS)
        if self._process.exitcode is None:
            self._process.terminate()
            self._process.join()


def _start_process(context: Any, arguments: tuple[Any, ...]) -> Any:
    """The loading process; forked where the server cannot be sent the dataset.

    Classes and functions that are defined inside others cannot be pickled, and data
    sets are full of them.
    """
    is_forked = context.get_start_method() == "fork"
    target = fetch_forked if is_forked else fetch
    process = context.Process(target=target, args=arguments)
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        if context.get_start_method() != "forkserver":
            raise
        logger.info("The loading process is forked, as its dataset is local: %s", error)
        forking = torch.multiprocessing.get_context("fork")
        return _start_process(forking, arguments)
    return process


@contextmanager
def _shared_dataset(
    config: FetchConfig, strategy: SharingStrategy
) -> Iterator[FetchConfig]:
    """`config` as it is handed to the process: for FileSystem, with a file."""
    if strategy is not SharingStrategy.FileSystem:
        yield config
        return
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "dataset"
        file.write_bytes(pickle.dumps(config.dataset))
        yield replace(config, dataset=file)


class AsynchronousDataAccessor:
    """Iterates over a dataset or loader in another process, ahead of the program.

    Elements are tensors, flat lists, tuples or dicts of tensors, or of a registered
    type. They lie in shared memory that is used again at the next step: clone what
    is to be kept.
    """

    def __init__(
        self,
        dataset: Any,
        buffer_size: int = 3,
        miss_sleep_time_in_ms: float = 0.1,
        load_indefinitely: bool = True,
        early_preload: bool = False,
        sharing_strategy: SharingStrategy = SharingStrategy.ForkServer,
        rebatched_size: int | None = None,
    ) -> None:
        """Start loading.

        buffer_size: elements kept ready. load_indefinitely: begin the next epoch
        before it is asked for. early_preload: begin before the first is asked for.
        rebatched_size: put elements together, or cut them, to this many rows.
        miss_sleep_time_in_ms has no effect: neither side ever waits by polling.
        """
        self._worker: AsynchronousWorker | None = None
        # A DataLoader knows what it cannot be asked for.
        refuse = getattr(dataset, "_check_async_use", None)
        if refuse is not None:
            refuse(rebatched_size)
        check(
            rebatched_size is None or rebatched_size > 1,
            f"rebatched_size must be None or greater than 1, not {rebatched_size}.",
        )
        self._dataset = dataset
        self.rebatched_size = rebatched_size
        config = FetchConfig(
            dataset,
            buffer_size,
            rebatched_size,
            load_indefinitely,
            early_preload,
            start_method=multiprocessing.get_start_method(allow_none=True),
        )
        self._worker = AsynchronousWorker(config, sharing_strategy)
        # Before multiprocessing's own exit code, which waits for the process.
        atexit.register(self._worker.terminate)

    def terminate(self) -> None:
        """End the loading process; the accessor cannot be used any more."""
        if self._worker is not None:
            atexit.unregister(self._worker.terminate)
            self._worker.terminate()
            self._worker = None

    def __del__(self) -> None:
        if getattr(self, "_worker", None) is not None:
            self.terminate()

    def __len__(self) -> int:
        num_elements = len(self._dataset)
        is_inside_loader = getattr(self._dataset, "_accessor", None) is self
        if self.rebatched_size is None or is_inside_loader:
            return num_elements
        return num_elements * self._dataset.batch_size // self.rebatched_size

    def _running_worker(self) -> AsynchronousWorker:
        check(self._worker is not None, "The AsynchronousDataAccessor was terminated.")
        assert self._worker is not None
        return self._worker

    def __iter__(self) -> AsynchronousDataAccessor:
        self._running_worker().begin_epoch()
        return self

    def __next__(self) -> Any:
        return self._running_worker().next_element()
