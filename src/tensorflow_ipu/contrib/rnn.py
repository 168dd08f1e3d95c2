"""`tf.contrib.rnn`: the cells, which are in `tf.nn.rnn_cell` too."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from . import absent as _absent

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(tf.nn.rnn_cell, name):
        raise _absent(f"rnn.{name}")
    return getattr(tf.nn.rnn_cell, name)
