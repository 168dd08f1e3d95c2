"""Raw operators of feeds: none is there, each says what to use instead."""

from __future__ import annotations

from . import _absent

__getattr__ = _absent.explain(
    __name__, {"": "ipu_infeed_queue, ipu_outfeed_queue or ops.embedding_ops"}
)
