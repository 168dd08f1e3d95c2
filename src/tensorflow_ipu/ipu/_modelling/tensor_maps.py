"""Where the tensors of a compiled program lie, and what its products are for.

In: a modelled program. Out: the two JSON texts of a compilation's trace event, in the
terms that its readers know: instructions are named like XLA's, tiles are numbered over
all IPUs, each pipeline stage is a computation of its own.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from typing import Any

from popple.graph import Graph, Op, Phase, Role, Value, get_op
from popple.pipeline import Modelled

from .xla_names import instruction_of

__all__ = ["instruction_info", "tensor_map"]

_PRODUCTS = frozenset({"conv", "conv_input_grad", "conv_weight_grad", "matmul"})
_OUTSIDE = (Role.INPUT, Role.WEIGHT)


class _Use(enum.IntEnum):
    """What a product or convolution is for."""

    INFERENCE = 1
    FORWARD = 2
    BACKWARD = 3
    UPDATE = 4


def tensor_map(modelled: Modelled) -> str:
    """The tensors of each computation with the tiles that hold their elements."""
    graph = modelled.graph
    mappings: dict[str, list[Any]] = {_safe(graph.name): list(_arguments(modelled))}
    for number, op in enumerate(graph.ops):
        entries = mappings.setdefault(_computation(graph, op), [])
        inst = f"{instruction_of(op)}.{number}"
        for index, name in enumerate(op.outputs):
            tensor = _tensor(
                modelled, graph.values[name], inst, index, op.chip, op.name
            )
            entries.append(tensor)
    return json.dumps({"mappings": mappings})


def instruction_info(modelled: Modelled) -> str:
    """What each product and convolution is for."""
    graph = modelled.graph
    updates = _gradients(graph)
    uses = {
        f"{op.name}/{name}.{number}": int(_use(op, graph, updates))
        for number, op in enumerate(graph.ops)
        for name in _classified(op, graph)
    }
    return json.dumps({"ml_types": uses})


def _gradients(graph: Graph) -> set[str]:
    """What updates and accumulators read, and what that shows another shape of."""
    found = set[str]()
    for op in reversed(graph.ops):
        is_last = op.phase is Phase.UPDATE or op.kind == "accumulate"
        is_shown = get_op(op.kind).is_view and op.outputs[0] in found
        if is_last or is_shown:
            found.update(op.inputs)
    return found


def _classified(op: Op, graph: Graph) -> list[str]:
    """The instructions of an op that say what they are for."""
    if op.kind == "conv_input_grad" and graph.is_training:
        return ["weights-transpose-chans-flip-x-y", instruction_of(op)]
    return [instruction_of(op)] if op.kind in _PRODUCTS else []


def _use(op: Op, graph: Graph, updates: set[str]) -> _Use:
    if not graph.is_training:
        return _Use.INFERENCE
    # The gradient of a convolution's input is a convolution like that of the forward
    # pass, with the weights turned round.
    if op.phase is Phase.FORWARD or op.kind == "conv_input_grad":
        return _Use.FORWARD
    makes_gradient = op.kind == "conv_weight_grad" or op.outputs[0] in updates
    return _Use.UPDATE if makes_gradient else _Use.BACKWARD


def _computation(graph: Graph, op: Op) -> str:
    """The program, or the part of a pipeline stage in one direction."""
    if graph.execution.num_stages == 1:
        return _safe(graph.name)
    return f"{_safe(graph.name)}_stage_{op.stage}_{op.phase.value}"


def _safe(name: str) -> str:
    return name.replace("/", "_")


def _arguments(modelled: Modelled) -> Iterator[list[Any]]:
    """What comes from the host: inputs, then variables."""
    graph = modelled.graph
    for number, value in enumerate(
        v for role in _OUTSIDE for v in graph.with_role(role)
    ):
        chip = modelled.planned.chips.get(value.name, 0)
        name = f"XLA_Args/{value.name}"
        yield _tensor(modelled, value, f"arg{number}.{number}", 0, chip, name)


def _tensor(
    modelled: Modelled, value: Value, inst: str, index: int, chip: int, name: str
) -> list[Any]:
    kind, tiles = value.type, list[tuple[int, int]]()
    mapping = modelled.planned.mappings.get(value.name)
    tile = chip * modelled.target.chip.num_tiles
    for count, num_bytes in mapping.bytes_by_tile.runs if mapping else ():
        num_elements = num_bytes // kind.dtype.num_bytes
        if num_elements:
            tiles += ((number, num_elements) for number in range(tile, tile + count))
        tile += count
    is_constant, is_alias = value.role is Role.CONSTANT, bool(value.storage)
    what = [inst, index, list(kind.shape), kind.dtype.value]
    return [*what, is_constant, is_alias, kind.num_elements, tiles, name]
