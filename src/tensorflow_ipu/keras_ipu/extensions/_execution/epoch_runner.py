"""Runs the steps of one epoch on the device and brings their results to the host.

In: a model, the data handler that cut the data into steps, the infeed of the epoch.
Out: for every execution the results of its last step (metrics) or of all its steps
(predictions); or, with asynchronous callbacks, of every step while it is being run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import ipu_infeed_queue, utils

from tensorflow_ipu._types import Tensors

from ..extensions_util import merge_into_batch_dimension
from ..polling_thread import PollingThread, PollingThreadPredict
from .step_programs import Mode

__all__ = ["Callbacks", "EpochRunner"]


class Callbacks:
    """The hooks of a callback list for the batches of one mode."""

    def __init__(self, callbacks: Any, mode: Mode) -> None:
        self.begin: Callable[[int], Any] = getattr(
            callbacks, f"on_{mode.value}_batch_begin"
        )
        self._end = getattr(callbacks, f"on_{mode.value}_batch_end")
        self._wraps = mode is Mode.PREDICT

    def end(self, step: int, results: Tensors) -> None:
        """A batch has ended with these results."""
        self._end(step, {"outputs": results} if self._wraps else results)


class EpochRunner:
    """The executions of one epoch."""

    def __init__(
        self,
        model: tf.keras.Model,
        mode: Mode,
        handler: Any,
        infeed: ipu_infeed_queue.IPUIterator,
        callbacks: Any,
    ) -> None:
        self._model = model
        self._handler = handler
        self._infeed = infeed
        self._callbacks = Callbacks(callbacks, mode)
        self._asynchronous = model._calls_back_asynchronously(mode)
        self._run = model._run_for(mode, handler, self._asynchronous)
        self._outfeed = model._outfeed_for(mode) if self._run.streams else None
        self._program = model._program_for(self._run, self._outfeed)
        self._prepared: Callable[[list[Any]], Any] | None = None
        self._starts = True

    def run(self) -> Iterator[Any]:
        """Run all executions; yields the results of each, or of the epoch at its end.

        The one who iterates may stop early: the callbacks under way are ended then.
        """
        if not self._asynchronous:
            yield from self._run_synchronously()
            return
        thread = self._start_thread()
        try:
            for _ in self._handler.steps():
                self._execute()
                yield None
            thread.join()
        finally:
            thread.cancel()
        yield thread.get_result()

    def _run_synchronously(self) -> Iterator[Any]:
        name = self._run.mode.value
        for step in self._handler.steps():
            with tf.profiler.experimental.Trace(name, step_num=step, _r=1):
                self._callbacks.begin(step)
                results = self._execute()
                if self._run.streams:
                    results = self._dequeue()
                self._callbacks.end(step + self._handler.step_increment, results)
            yield results

    def _execute(self) -> Tensors:
        tensors = []
        if self._run.num_replicas > 1:
            tensors.append(tf.constant(self._starts))
            self._starts = False
        # Once per epoch: tracing looks at arguments, which takes longer than a small
        # step.
        if self._prepared is None:
            arguments = [self._infeed, *tensors]
            self._prepared = self._model._prepared(self._program, arguments)
        return self._prepared(tensors)

    def _start_thread(self) -> PollingThread:
        predicts = self._run.mode is Mode.PREDICT
        thread = (PollingThreadPredict if predicts else PollingThread)(
            self._outfeed,
            self._handler.inferred_steps,
            self._run.num_replicas,
            self._callbacks.begin,
            self._callbacks.end,
            unpack_step_results=self._model._wraps_results(self._run.mode),
        )
        thread.start()
        return thread

    def _dequeue(self) -> Tensors:
        if utils.use_synthetic_data_for(utils.SyntheticDataCategory.Outfeed):
            return self._zeros()
        results = self._outfeed.dequeue()
        if self._run.mode is Mode.PREDICT:
            return merge_into_batch_dimension(results, self._run.num_replicas)
        results = _last(results)
        if self._run.num_replicas > 1:
            results = _last(results)
        return results[0] if isinstance(results, list | tuple) else results

    def _zeros(self) -> Tensors:
        """What comes back when nothing is transferred: zeros of the right shape."""
        results = self._outfeed.dequeue()
        num_samples = self._run.num_steps * self._run.num_replicas
        if self._run.mode is not Mode.PREDICT:
            return tf.nest.map_structure(lambda _: tf.zeros([]), results)

        def zeros(empty: Any) -> tf.Tensor:
            batch, *rest = empty.shape.as_list()[
                2 if self._run.num_replicas > 1 else 1 :
            ]
            return tf.zeros([num_samples * batch, *rest], empty.dtype)

        return tf.nest.map_structure(zeros, results)


def _last(results: Tensors) -> Tensors:
    return tf.nest.map_structure(lambda tensor: tensor[-1], results)
