"""Automatic sharding, which releases before 2.1 had.

It cut a graph between IPUs where little travels, which changes no value. Here all of it
is on the first IPU, and the log says so: the modelled cost is that of one IPU.
"""

from __future__ import annotations

import contextlib
from typing import Any

from tensorflow_ipu import _notices

from . import scopes

__all__ = ["automatic_sharding", "ipu_autoshard"]

_ADVICE = (
    "operators are not sharded automatically: all are on the first IPU. To cut a "
    "program, use `ipu.scopes.ipu_shard` or `ipu.pipelining_ops.pipeline`."
)


def ipu_autoshard() -> contextlib.AbstractContextManager[Any]:
    """A scope whose operators are sharded automatically: on the first IPU."""
    return scopes.ipu_shard(0)


def automatic_sharding(
    num_shards: int,
    input_ts: Any,
    loss_ts: Any,
    edge_filter: Any = None,
    frozen_inference: bool = False,
) -> None:
    """Put operators on so many IPUs, cut where little travels: on the first."""
    _notices.warn(_ADVICE)
