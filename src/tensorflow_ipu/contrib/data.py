"""`tf.contrib.data`: transformations that have been in `tf.data` since 1.13."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from . import absent as _absent

__all__ = ["AUTOTUNE"]

AUTOTUNE = tf.data.experimental.AUTOTUNE

_SERVED = frozenset(
    {
        "assert_element_shape",
        "bucket_by_sequence_length",
        "choose_from_datasets",
        "group_by_window",
        "ignore_errors",
        "make_batched_features_dataset",
        "make_csv_dataset",
        "map_and_batch",
        "parallel_interleave",
        "prefetch_to_device",
        "rejection_resample",
        "sample_from_datasets",
        "scan",
        "shuffle_and_repeat",
        "unbatch",
        "unique",
    }
)


def __getattr__(name: str) -> Any:
    if name in _SERVED and hasattr(tf.data.experimental, name):
        return getattr(tf.data.experimental, name)
    raise _absent(f"data.{name}")
