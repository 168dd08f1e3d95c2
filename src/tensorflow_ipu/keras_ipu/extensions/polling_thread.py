"""Callbacks after every step, while the device still runs the steps that follow.

In: an outfeed that a running program fills, one element per step. Out: calls of
`batch_begin_fn(step)` and `batch_end_fn(step, result)` for every step of every replica,
in order, from a thread of their own; and the last result, or all predictions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import Tensors

from .extensions_util import merge_into_batch_dimension

__all__ = ["PollingThread", "PollingThreadPredict"]

_LONGEST_WAIT_S = 0.001
_WAITS_PER_STEP = 2


class PollingThread(threading.Thread):
    """Looks after an outfeed until `num_steps` steps have come out of it.

    What a callback raises ends the thread and is raised by :meth:`get_result`.
    """

    def __init__(
        self,
        output_iterator: Any,
        num_steps: int,
        replication_factor: int,
        batch_begin_fn: Callable[[int], Any],
        batch_end_fn: Callable[[int, Any], Any],
        unpack_step_results: bool = False,
    ) -> None:
        super().__init__(daemon=True)
        self._outfeed = output_iterator
        self._num_steps = num_steps
        self._replication_factor = replication_factor
        self._batch_begin_fn = batch_begin_fn
        self._batch_end_fn = batch_end_fn
        self._unpack_step_results = unpack_step_results
        self._cancelled = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None
        self._last_time_s: float | None = None
        self._wait_s = _LONGEST_WAIT_S

    def postprocess(self, num_samples_processed: int) -> None:
        """Wait if nothing came; learn from what came how long steps take."""
        if not num_samples_processed:
            self._cancelled.wait(self._wait_s)
            return
        now_s = time.monotonic()
        if self._last_time_s is not None:
            step_s = (now_s - self._last_time_s) / num_samples_processed
            self._wait_s = min(step_s / _WAITS_PER_STEP, _LONGEST_WAIT_S)
        self._last_time_s = now_s

    def cancel(self) -> None:
        """Stop before all steps are there, and wait until the thread has ended."""
        self._cancelled.set()
        self.join()

    def cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._cancelled.is_set()

    def get_result(self) -> Tensors:
        """What the last step gave; call it after the thread has ended."""
        if self._error is not None:
            raise self._error
        return self._result

    def run(self) -> None:
        """Dequeue and call back until all steps are done."""
        try:
            self._poll()
        # Whatever it is: handed over to the thread that asks for the result.
        except BaseException as error:  # noqa: BLE001
            self._error = error

    def _poll(self) -> None:
        step = 0
        while step < self._num_steps and not self.cancelled():
            results = self._outfeed.dequeue()
            num_steps = _num_elements(results)
            for index in range(num_steps):
                for result in self._of_replicas(results, index):
                    self._batch_begin_fn(step)
                    self._batch_end_fn(step, result)
                    self._keep_step(result)
                step += 1
            if num_steps:
                self._keep_results(results)
            self.postprocess(num_steps)

    def _of_replicas(self, results: Tensors, index: int) -> Iterator[Any]:
        of_step = tf.nest.map_structure(lambda tensor: tensor[index], results)
        if self._unpack_step_results:
            of_step = of_step[0]
        if self._replication_factor == 1:
            yield of_step
            return
        for replica in range(self._replication_factor):
            yield tf.nest.map_structure(lambda tensor, r=replica: tensor[r], of_step)

    def _keep_step(self, result: Any) -> None:
        self._result = result

    def _keep_results(self, results: Tensors) -> None:
        """Nothing: the last step is what counts."""


class PollingThreadPredict(PollingThread):
    """The same for predictions: the result is all of them, in the order of samples."""

    def _keep_step(self, result: Any) -> None:
        """Nothing: predictions are kept together, as they were dequeued."""

    def _keep_results(self, results: Tensors) -> None:
        merged = merge_into_batch_dimension(results, self._replication_factor)
        self._result = [*(self._result or []), merged]


def _num_elements(results: Tensors) -> int:
    """How many steps are in what was dequeued; nothing has no structure yet."""
    flat = tf.nest.flatten(results)
    return flat[0].shape[0] if flat else 0
