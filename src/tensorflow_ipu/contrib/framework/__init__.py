"""`tf.contrib.framework`: reading check points."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .. import absent as _absent

__all__ = [
    "get_or_create_global_step",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "nest",
]

get_or_create_global_step = tf.train.get_or_create_global_step
list_variables = tf.train.list_variables
load_checkpoint = tf.train.load_checkpoint
load_variable = tf.train.load_variable
nest = tf.nest


def __getattr__(name: str) -> Any:
    raise _absent(f"framework.{name}")
