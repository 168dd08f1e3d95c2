"""Marks on operations, for the model of what they cost.

They are attributes of TensorFlow's operations that `popple.capture.tensorflow` reads;
they change nothing in what TensorFlow computes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import ops

__all__ = ["marked"]


@contextlib.contextmanager
def marked(values: Mapping[str, int | str]) -> Iterator[None]:
    """Operations built inside carry these attributes."""
    attributes = {
        name: attr_value_pb2.AttrValue(i=value)
        if isinstance(value, int)
        else attr_value_pb2.AttrValue(s=value.encode())
        for name, value in values.items()
    }
    with ops.get_default_graph()._attr_scope(attributes):
        yield
