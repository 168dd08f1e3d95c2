"""Automatic sharding, which older releases had: refused, with what to do instead."""

from __future__ import annotations

from typing import Any, NoReturn

from popple.errors import UsageError

__all__ = ["automatic_sharding", "ipu_autoshard"]


def ipu_autoshard() -> NoReturn:
    """A scope whose operators were to be sharded automatically."""
    _refuse("ipu_autoshard")


def automatic_sharding(
    num_shards: int,
    input_ts: Any,
    loss_ts: Any,
    edge_filter: Any = None,
    frozen_inference: bool = False,
) -> NoReturn:
    """Put operators on so many IPUs, cut where little travels."""
    _refuse("automatic_sharding")


def _refuse(name: str) -> NoReturn:
    raise UsageError(
        f"{name}: programs are not sharded automatically.",
        where="tensorflow.python.ipu.autoshard",
        remedy="Say which IPU operators are on with `ipu.scopes.ipu_shard`, or build a"
        " pipeline with `ipu.pipelining_ops.pipeline`.",
    )
