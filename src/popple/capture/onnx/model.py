"""A Graph as an ONNX model: names, types and edges.

Weights are inputs without values, and ops carry no attributes: a model made here is to
be looked at, and to be searched for names, not to be run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, OperatorSetIdProto, helper

from popple.capture.onnx.types import make_value_info
from popple.graph import Graph, Op, Role

# Version 8 of the format and set 13 of the standard operators belong to ONNX 1.10.
_IR_VERSION = 8
_STANDARD_SET = 13
_OWN_SET = 1
DOMAIN = "ai.graphcore"
"""Where the names of the IPU's own operators belong; they are not those of ONNX."""


@dataclass(frozen=True)
class Node:
    """An op with the name and the operator under which a program knows it."""

    name: str
    operator: str
    op: Op


def make_model(
    graph: Graph, nodes: Iterable[Node], *, producer_version: str
) -> ModelProto:
    """The model of these nodes; its inputs are all values that no op computes.

    `producer_version` is that of the interface the program was written for.
    """
    given = (v for v in graph.values.values() if v.role is not Role.ACTIVATION)
    results = (graph.values[name] for name in graph.outputs)
    return helper.make_model(
        helper.make_graph(
            [_make_node(node) for node in nodes],
            graph.name,
            [make_value_info(value) for value in given],
            [make_value_info(value) for value in results],
        ),
        ir_version=_IR_VERSION,
        opset_imports=[
            # The standard operators are those without a domain.
            OperatorSetIdProto(version=_STANDARD_SET),
            helper.make_operatorsetid(DOMAIN, _OWN_SET),
        ],
        producer_name="popple",
        producer_version=producer_version,
    )


def _make_node(node: Node) -> NodeProto:
    inputs, outputs = node.op.inputs, node.op.outputs
    return helper.make_node(node.operator, inputs, outputs, node.name, domain=DOMAIN)
