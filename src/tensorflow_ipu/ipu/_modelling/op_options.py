"""Options of Poplar for kinds of ops, as attributes that the planner reads.

In: the graph of a program and the device's IpuOptions. Out: the graph with what the
configuration says on the ops it speaks of. What an op says itself goes before that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from popple.graph import Attr, Graph, Op, get_op

__all__ = ["wishes_of", "with_options"]

# Recurrent layers and solvers begin with the options of products (rnn_util.cc and
# poplar_util.cc of the device's TensorFlow).
_FIELDS = {
    "matmul": "matmul_options",
    "conv": "convolution_options",
    "gather": "slice_options",
    "recurrent": "matmul_options",
    "solve": "matmul_options",
}
_PARTIALS = {"half": "f16", "float": "f32"}
# Rows of a block where the configuration does not say: XLA's own (poplar_executor.h).
_BLOCK_SIZE = 128
_BLOCK_SIZES = {
    "cholesky": "cholesky_block_size",
    "triangular_solve": "triangular_solve_expander_block_size",
}


def with_options(graph: Graph, configured: Any, stage_options: str = "") -> Graph:
    """The graph with options on its products, convolutions, slices and solvers.

    `stage_options` are those of a pipeline's stages, as they are marked with.
    """
    fields = set(_FIELDS.values())
    everywhere = {f: wishes_of(_pairs(getattr(configured, f))) for f in fields}
    stages = json.loads(stage_options) if stage_options else {}

    def options_of(op: Op) -> dict[str, Attr]:
        field = _FIELDS.get(get_op(op.kind).family)
        if field is None:
            return {}
        of_phase = stages.get(op.phase.value, ())
        own = of_phase[op.stage][field] if op.stage < len(of_phase) else {}
        return {**everywhere[field], **wishes_of(own), **_block_size(op, configured)}

    return graph.with_ops(
        replace(op, attrs={**attrs, **op.attrs}) if (attrs := options_of(op)) else op
        for op in graph.ops
    )


def wishes_of(options: Mapping[str, Any]) -> dict[str, Attr]:
    """What options of Poplar are in the planner's words; others change no plan."""
    wishes: dict[str, Attr] = {}
    proportion = float(options.get("availableMemoryProportion") or 0)
    if proportion > 0:
        wishes["memory_proportion"] = proportion
    if partials := _PARTIALS.get(str(options.get("partialsType"))):
        wishes["partials"] = partials
    return wishes


def _pairs(items: Iterable[Any]) -> dict[str, str]:
    return {item.option: item.value for item in items}


def _block_size(op: Op, configured: Any) -> dict[str, Attr]:
    if (field := _BLOCK_SIZES.get(op.kind)) is None:
        return {}
    size = getattr(configured, field)
    return {"poplin.blockSize": size if size > 0 else _BLOCK_SIZE}
