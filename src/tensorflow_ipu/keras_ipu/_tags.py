"""Marks on operations that tell the cost model where they come from.

Operations made inside these scopes carry `_ipu_layer` and `_ipu_phase` (pipelines add
`_ipu_stage`); gradient operations lead back to the operation they belong to, and so to
its marks.
Attributes of this kind change nothing in what TensorFlow computes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.core.framework import attr_value_pb2

from popple.marks import LAYER, PHASE
from tensorflow_ipu._types import Tensors

__all__ = ["call_tagged", "phase", "tagging"]


class _Place(threading.local):
    """Whether operations are being marked, and the layers being called."""

    active: bool = False
    layers: tuple[str, ...] = ()


_PLACE = _Place()


@contextlib.contextmanager
def tagging() -> Iterator[None]:
    """Mark the operations of the program that is traced inside."""
    outer = _PLACE.active, _PLACE.layers
    _PLACE.active, _PLACE.layers = True, ()
    try:
        yield
    finally:
        _PLACE.active, _PLACE.layers = outer


def phase(name: str) -> contextlib.AbstractContextManager[None]:
    """Operations inside belong to the `forward`, `backward` or `update` phase."""
    return _marked(PHASE, attr_value_pb2.AttrValue(s=name.encode()))


def call_tagged(layer: tf.keras.layers.Layer, call: Callable[[], Any]) -> Tensors:
    """Call a layer so that its operations carry its name, below those around it."""
    if not _PLACE.active or tf.executing_eagerly():
        return call()
    outer = _PLACE.layers
    _PLACE.layers = (*outer, layer.name)
    name = "/".join(_PLACE.layers).encode()
    try:
        with _marked(LAYER, attr_value_pb2.AttrValue(s=name)):
            return call()
    finally:
        _PLACE.layers = outer


@contextlib.contextmanager
def _marked(name: str, value: attr_value_pb2.AttrValue) -> Iterator[None]:
    graph: Any = tf.compat.v1.get_default_graph()
    with graph._attr_scope({name: value}):
        yield
