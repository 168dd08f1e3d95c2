"""`tf.contrib.util`: conversions between tensors and their messages."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from . import absent as _absent

__all__ = ["make_ndarray", "make_tensor_proto"]

make_ndarray = tf.make_ndarray
make_tensor_proto = tf.make_tensor_proto


def __getattr__(name: str) -> Any:
    raise _absent(f"util.{name}")
