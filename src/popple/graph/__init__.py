"""Graph: ops over values, what one micro-batch computes; op table, text, verify."""

from popple.graph.attrs import Attr, AttrDef, AttrType
from popple.graph.batch import batch_of
from popple.graph.dependencies import find_dependencies
from popple.graph.functions import (
    LOOPS,
    all_ops,
    arguments_of,
    function_order,
    functions_of,
    num_sites,
    qualified,
)
from popple.graph.graph import (
    Execution,
    Graph,
    Op,
    Phase,
    Redone,
    Role,
    Strategy,
    Value,
)
from popple.graph.notes import (
    NO_NOTES,
    LinearPass,
    LinearProduct,
    MultiConv,
    Notes,
    SerialSplit,
    SplitDimension,
    parse_notes,
    render_notes,
    sorted_labels,
)
from popple.graph.opdef import OpDef
from popple.graph.ops import FAMILIES, OPS, find_op, get_op
from popple.graph.signature import Signature
from popple.graph.text import parse_graph, render_graph
from popple.graph.types import DType, TensorType
from popple.graph.verify import verify

__all__ = [
    "FAMILIES",
    "LOOPS",
    "NO_NOTES",
    "OPS",
    "Attr",
    "AttrDef",
    "AttrType",
    "DType",
    "Execution",
    "Graph",
    "LinearPass",
    "LinearProduct",
    "MultiConv",
    "Notes",
    "Op",
    "OpDef",
    "Phase",
    "Redone",
    "Role",
    "SerialSplit",
    "Signature",
    "SplitDimension",
    "Strategy",
    "TensorType",
    "Value",
    "all_ops",
    "arguments_of",
    "batch_of",
    "find_dependencies",
    "find_op",
    "function_order",
    "functions_of",
    "get_op",
    "num_sites",
    "parse_graph",
    "parse_notes",
    "qualified",
    "render_graph",
    "render_notes",
    "sorted_labels",
    "verify",
]
