"""Hooks of sessions that look into programs on the IPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow.python.platform import tf_logging
from tensorflow.python.training import basic_session_run_hooks

from tensorflow_ipu._former_arguments import IGNORED, with_former
from tensorflow_ipu._types import Tensors

from . import ipu_outfeed_queue

# As numpy wrote numbers when these programs were written: 42.0, not np.float32(42.0).
_IS_NUMPY_2 = int(np.__version__.partition(".")[0]) >= 2
_AS_BEFORE: Any = {"legacy": "1.25"} if _IS_NUMPY_2 else {}

_LoggingMode = ipu_outfeed_queue.IPUOutfeedMode


class IPULoggingTensorHook(tf.compat.v1.train.SessionRunHook):
    """Logs tensors of a program: every so many runs or seconds, or at the end."""

    LoggingMode = _LoggingMode

    @with_former(feed_name=IGNORED, replication_factor=IGNORED)
    def __init__(
        self,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[Mapping[str, Any]], str] | None = None,
        logging_mode: _LoggingMode = LoggingMode.LAST,
    ) -> None:
        if None not in (every_n_iter, every_n_secs):
            raise ValueError("Cannot provide both every_n_iter and every_n_secs")
        periodic = every_n_iter is not None or every_n_secs is not None
        if not periodic and not at_end:
            raise ValueError(
                "Either every_n_iter, every_n_secs or at_end should be provided"
            )
        self._timer: Any = (
            basic_session_run_hooks.SecondOrStepTimer(every_n_secs, every_n_iter)
            if periodic
            else basic_session_run_hooks.NeverTriggerTimer()
        )
        self._log_at_end = at_end
        self._formatter = formatter
        self._outfeed = ipu_outfeed_queue.IPUOutfeedQueue(logging_mode)
        self._dequeued: Any = None
        self._deleter: Any = None
        self._num_runs = 0

    def log(self, tensors: Tensors) -> tf.Operation:
        """Log a tensor, a list of tensors or a dictionary; the operation to run."""
        if self._outfeed.enqueued:
            raise RuntimeError(
                "Cannot use this hook object's log function more than once: log a list"
                " or a dictionary of all tensors, or use another hook."
            )
        return self._outfeed.enqueue(_by_name(tensors))

    def begin(self) -> None:
        if not self._outfeed.enqueued:
            raise RuntimeError(
                "This logging hook has nothing to log. Did you forget to call the log"
                " function?"
            )
        with tf.device("cpu"):
            self._dequeued = self._outfeed.dequeue()
            self._deleter = self._outfeed.deleter
        self._num_runs = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if self._timer.should_trigger_for_step(self._num_runs):
            self._log_values(run_context.session.run(self._dequeued))
        self._num_runs += 1

    def end(self, session: tf.compat.v1.Session) -> None:
        if self._log_at_end:
            self._log_values(session.run(self._dequeued))
        session.run(self._deleter)
        self._timer.reset()

    def _log_values(self, values: Mapping[str, Any]) -> None:
        elapsed_secs, _ = self._timer.update_last_triggered_step(self._num_runs)
        with np.printoptions(suppress=True, **_AS_BEFORE):
            if self._formatter is not None:
                tf_logging.info(self._formatter(values))
                return
            text = ", ".join(f"{name} = {value}" for name, value in values.items())
        if elapsed_secs is not None:
            text += f" ({elapsed_secs:.3f} sec)"
        tf_logging.info("%s", text)


def _by_name(tensors: Tensors) -> Mapping[str, Any]:
    if isinstance(tensors, dict):
        return tensors
    listed = tensors if isinstance(tensors, list | tuple) else [tensors]
    for tensor in listed:
        if not tf.is_tensor(tensor):
            raise TypeError(f"Expected `tf.Tensor`, got {type(tensor)}")
    return {tensor.name: tensor for tensor in listed}
