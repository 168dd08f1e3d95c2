"""Runs executables: a program waits for elements and answers each with one.

An engine has a graph, a session and a thread of its own, in which the program runs
again and again; calls put an element into its infeeds and wait for its outfeeds. Where
the program fails, the call that waits gets the error and the engine starts afresh.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf

from .executable_files import PROGRAM, Executable, Value
from .safe_programs import parse_program

v1 = tf.compat.v1
_CAPACITY = 2**31 - 1
_JOIN_SECS = 10


class Engine:
    """One running program."""

    def __init__(self, executable: Executable) -> None:
        self._executable = executable
        self._lock = threading.Lock()
        self._inputs: Sequence[Any] | None = None
        self._run: _Run | None = None

    def start(self, *inputs: Any) -> list[bool]:
        """Start with these inputs; a second start changes nothing."""
        with self._lock:
            if self._run is None:
                self._inputs = inputs
                self._run = _Run(self._executable, inputs)
        return [True]

    def call(self, *tensors: Any) -> list[Any]:
        """What the program makes of one element."""
        with self._lock:
            if self._run is None:
                raise RuntimeError(
                    "The engine is not running: start it with embedded_runtime_start."
                )
            try:
                return self._run.call(tensors)
            # The program has ended with its error; the next call finds a new one.
            except tf.errors.OpError:
                self._run = _Run(self._executable, self._inputs or ())
                raise

    def stop(self) -> None:
        """Stop the program; what is in its feeds is dropped."""
        with self._lock:
            run, self._run = self._run, None
        if run is not None:
            run.stop()


class _Run:
    """A program between its start and its end."""

    def __init__(self, executable: Executable, inputs: Sequence[Any]) -> None:
        self._error: tf.errors.OpError | None = None
        with tf.Graph().as_default() as graph, tf.device("/device:CPU:0"):
            self._build(executable, inputs)
        # Threads of its own: callers wait in those that all sessions share.
        config = v1.ConfigProto(use_per_session_threads=True)
        self._session = v1.Session(graph=graph, config=config)
        self._session.run(self._initialize, self._fed)
        # A daemon, as Python would otherwise wait for it when a script ends.
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _build(self, executable: Executable, inputs: Sequence[Any]) -> None:
        given = {
            value.placeholder: array
            for value, array in zip(executable.inputs, inputs, strict=True)
        }
        arrays = {**executable.values, **given}
        self._fed: dict[Any, Any] = {}
        places: dict[str, Any] = {}
        assigns: list[Any] = []
        for value in executable.starts:
            fed = v1.placeholder(value.dtype, value.shape)
            self._fed[fed] = arrays[value.placeholder]
            places[value.placeholder] = fed
            if value.is_variable:
                places[value.placeholder] = _variable(value)
                assigns.append(
                    tf.raw_ops.AssignVariableOp(
                        resource=places[value.placeholder], value=fed
                    )
                )
        self._initialize = tf.group(*assigns)
        self._feeds = [_queue(feed) for feed in executable.infeeds]
        answers = [_queue(feed) for feed in executable.outfeeds]
        for feed, queue in zip(executable.infeeds, self._feeds, strict=True):
            places[feed.placeholder] = queue.queue_ref
        for feed, queue in zip(executable.outfeeds, answers, strict=True):
            places[feed.placeholder] = queue.queue_ref
        definition = parse_program(executable.program)
        (self._program,) = tf.import_graph_def(
            definition, places, return_elements=[PROGRAM], name="application"
        )
        self._elements = [
            [v1.placeholder(dtype) for dtype in feed.types]
            for feed in executable.infeeds
        ]
        self._put = [
            queue.enqueue(element)
            for queue, element in zip(self._feeds, self._elements, strict=True)
        ]
        self._taken = tf.nest.flatten([queue.dequeue() for queue in answers])
        self._close = [
            queue.close(cancel_pending_enqueues=True)
            for queue in (*self._feeds, *answers)
        ]

    def call(self, tensors: Sequence[Any]) -> list[Any]:
        places = [place for element in self._elements for place in element]
        try:
            # Copies: the queue keeps them longer than the caller does.
            fed = map(np.array, tensors)
            self._session.run(self._put, dict(zip(places, fed, strict=True)))
            return self._session.run(self._taken)
        except tf.errors.OpError as error:
            raise self._error or error from None

    def stop(self) -> None:
        self._session.run(self._close)
        self._thread.join(_JOIN_SECS)

    def _serve(self) -> None:
        try:
            while True:
                self._session.run(self._program, self._fed)
        except tf.errors.OpError as error:
            self._error = error
        # Whoever waits for an answer learns that none will come.
        self._session.run(self._close)


def _variable(value: Value) -> tf.Tensor:
    dtype = tf.as_dtype(value.dtype)
    return tf.raw_ops.VarHandleOp(
        dtype=dtype, shape=value.shape, shared_name=value.placeholder
    )


def _queue(feed: Any) -> tf.queue.FIFOQueue:
    return tf.queue.FIFOQueue(_CAPACITY, list(feed.types), list(feed.shapes))


class Engines:
    """The engines of this process, by name."""

    def __init__(self) -> None:
        self._engines: dict[str, Engine] = {}
        atexit.register(self.stop)

    def get(self, name: str, executable: Executable) -> Engine:
        """The engine of that name, new for another executable."""
        return self._engines.setdefault(name, Engine(executable))

    def running(self, name: str) -> Engine:
        """The engine of that name."""
        if name not in self._engines:
            raise RuntimeError(
                f"There is no engine {name!r}: it was stopped, or never started."
            )
        return self._engines[name]

    def forget(self, name: str) -> None:
        """Stop the engine of that name."""
        engine = self._engines.pop(name, None)
        if engine is not None:
            engine.stop()

    def stop(self) -> None:
        """Stop all."""
        for name in list(self._engines):
            self.forget(name)


ENGINES = Engines()
