"""Graph: ops over values, what is computed. Printable, parsable, verifiable."""

from popple.graph.graph import (
    Attr,
    Execution,
    Graph,
    Op,
    Phase,
    Role,
    Signature,
    Strategy,
    Value,
)
from popple.graph.opdef import OpDef
from popple.graph.ops import FAMILIES, OPS, find_op, get_op
from popple.graph.text import parse_graph, render_graph
from popple.graph.types import DType, TensorType
from popple.graph.verify import verify

__all__ = [
    "FAMILIES",
    "OPS",
    "Attr",
    "DType",
    "Execution",
    "Graph",
    "Op",
    "OpDef",
    "Phase",
    "Role",
    "Signature",
    "Strategy",
    "TensorType",
    "Value",
    "find_op",
    "get_op",
    "parse_graph",
    "render_graph",
    "verify",
]
