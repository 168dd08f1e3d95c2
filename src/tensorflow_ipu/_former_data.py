"""Statistics of input pipelines, which `tf.data` had until TensorFlow 2.5.

In: `tf.data.experimental` of a program for TensorFlow 1. Out: the same module with the
names of the statistics. Nothing measures them any more: pipelines are as quick as they
are, summaries are empty, and TensorFlow's log says so.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorflow_ipu import _notices

__all__ = ["serve_statistics"]

_NONE_ARE_MEASURED = (
    "TensorFlow has measured no statistics of input pipelines since 2.6: summaries of "
    "a StatsAggregator are empty."
)


class StatsAggregator:
    """Collects statistics of the pipelines that it is an option of: none today."""

    def __init__(self) -> None:
        _say_that_none_are_measured()

    def get_summary(self) -> Any:
        """A summary, as text of the protocol."""
        tensorflow: Any = importlib.import_module("tensorflow.compat.v2")
        return tensorflow.constant(b"")


@dataclass
class StatsOptions:
    """`experimental_stats` of a pipeline's options."""

    aggregator: StatsAggregator | None = None
    prefix: str = ""
    counter_prefix: str = ""
    latency_all_edges: bool | None = None


def bytes_produced_stats(tag: str) -> Callable[[Any], Any]:
    """A transformation that noted the sizes of elements."""
    return _unchanged(tag)


def latency_stats(tag: str) -> Callable[[Any], Any]:
    """A transformation that noted how long elements took."""
    return _unchanged(tag)


def serve_statistics(experimental: Any) -> None:
    """Give a module `tf.data.experimental` the names, and options their group."""
    for each in (StatsAggregator, StatsOptions, bytes_produced_stats, latency_stats):
        vars(experimental).setdefault(each.__name__, each)
    options = importlib.import_module("tensorflow.python.data.ops.options").Options
    if not hasattr(options, "experimental_stats"):
        options.experimental_stats = property(_stats_of)


def _stats_of(options: Any) -> StatsOptions:
    # Not `setattr`, with which options refuse what is none of theirs.
    return vars(options).setdefault("_popple_stats", StatsOptions())


def _unchanged(tag: str) -> Callable[[Any], Any]:
    del tag
    _say_that_none_are_measured()
    return lambda dataset: dataset


@functools.cache  # once
def _say_that_none_are_measured() -> None:
    _notices.warn(_NONE_ARE_MEASURED)
