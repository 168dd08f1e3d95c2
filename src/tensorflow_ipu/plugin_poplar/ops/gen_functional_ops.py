"""Raw operators of functions: none is there, each says what to use instead."""

from __future__ import annotations

from . import _absent

__getattr__ = _absent.explain(
    __name__, {"": "ops.functional_ops, loops or ops.pipelining_ops"}
)
