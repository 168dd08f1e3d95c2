"""Regions: marks on operations that together stand for one operation of the machine.

What replicas exchange is made of queues here and of links there; a sum over batches is
a variable and a branch here and one operation there. `popple.capture.tensorflow` reads
the marks where it models a program; they change nothing in what TensorFlow computes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import ops

from popple.marks import ACCUMULATION, MULTI_CONV, OUTLINED, PLANNED, REGION

__all__ = ["outlined", "planned", "region", "side_by_side", "weight_update"]

_ATTR_VALUE: Any = attr_value_pb2


@contextlib.contextmanager
def region(kind: str, **attrs: Any) -> Iterator[None]:
    """Operations built inside stand for one of this kind, an op of the cost model.

    Besides those there are EXCHANGE, what replicas send each other; ACCUMULATE, a sum
    over batches; SAME, what gives its input back but for values that show a mistake;
    and NOTHING, what the machine has no part in.
    """
    if tf.executing_eagerly():
        yield
        return
    details = f" {json.dumps(attrs)}" if attrs else ""
    label = f"{kind}:{ops.uid()}{details}"
    with _marked(REGION, _ATTR_VALUE.AttrValue(s=label.encode())):
        yield


@contextlib.contextmanager
def outlined(name: str) -> Iterator[None]:
    """Operations built inside are one call of a function whose code exists once.

    Calls that do the same share it.
    """
    if tf.executing_eagerly():
        yield
        return
    graph: Any = ops.get_default_graph()
    around = graph._attr_scope_map.get(OUTLINED)
    outer = [] if around is None else [around.s.decode()]
    label = ";".join([*outer, f"{name}:{ops.uid()}"])
    with _marked(OUTLINED, _ATTR_VALUE.AttrValue(s=label.encode())):
        yield


@contextlib.contextmanager
def weight_update(num_batches: int) -> Iterator[None]:
    """Operations built inside update weights once for so many batches."""
    with _marked(ACCUMULATION, _ATTR_VALUE.AttrValue(i=num_batches)):
        yield


@contextlib.contextmanager
def side_by_side(notes: str) -> Iterator[None]:
    """Convolutions built inside run at the same time, on tiles of their own.

    `notes` are those on their ops of the cost model, in text form.
    """
    if tf.executing_eagerly():
        yield
        return
    with _marked(MULTI_CONV, _ATTR_VALUE.AttrValue(s=notes.encode())):
        yield


@contextlib.contextmanager
def planned(forward: str, backward: str) -> Iterator[None]:
    """Recurrent layers built inside have these notes, and those, their gradients.

    Both are the text form of notes on ops of the cost model.
    """
    if tf.executing_eagerly():
        yield
        return
    text = json.dumps([forward, backward])
    with _marked(PLANNED, _ATTR_VALUE.AttrValue(s=text.encode())):
        yield


def _marked(name: str, value: Any) -> contextlib.AbstractContextManager[None]:
    graph: Any = ops.get_default_graph()
    return graph._attr_scope({name: value})
