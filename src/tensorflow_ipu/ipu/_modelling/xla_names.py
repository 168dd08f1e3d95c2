"""Ops in the words of XLA and PopLibs, which trace events and reports are read in.

In: the ops of a modelled program. Out: the instruction that each would be, and names of
compute sets: operator of TensorFlow / instruction / function of PopLibs / step of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from popple.graph import Graph, Op, all_ops, get_op

__all__ = ["instruction_of", "name_compute_sets"]

# Kind of op -> instruction and function. For the rest, underscores become hyphens.
_ELEMENTWISE = {
    "abs": ("abs", "Op/Absolute"),
    "add": ("add", "Op/Add"),
    "branch": ("conditional", ""),
    "cast": ("convert", "Cast"),
    "div": ("divide", "Op/Divide"),
    "exp": ("exponential", "Op/Exponent"),
    "log": ("log", "Op/Logarithm"),
    "maximum": ("maximum", "Op/Maximum"),
    "minimum": ("minimum", "Op/Minimum"),
    "mul": ("multiply", "Op/Multiply"),
    "neg": ("negate", "Op/Negate"),
    "normal": ("rng", "normal"),
    "pow": ("power", "Op/Power"),
    "repeat": ("while", ""),
    "restore": ("dynamic-slice", "dynamicSlice"),
    "rsqrt": ("rsqrt", "Op/Rsqrt"),
    "select": ("select", "Op/Select"),
    "sign": ("sign", "Op/Signum"),
    "sqrt": ("sqrt", "Op/Sqrt"),
    "square": ("multiply", "Op/Multiply"),
    "stash": ("dynamic-update-slice", "dynamicUpdate"),
    "sub": ("subtract", "Op/Subtract"),
    "uniform": ("rng", "uniform"),
}
_NONLINEAR = frozenset({"gelu", "relu", "sigmoid", "softplus", "tanh"})
_POOLS = {"max_pool": "maxPool", "avg_pool": "avgPool"}
_CONVOLUTIONS = frozenset({"conv", "conv_input_grad", "conv_weight_grad"})
_PRODUCTS = _CONVOLUTIONS | {"matmul"}
_GRADIENT = "_grad"

# Steps of a plan -> those of the function.
_STEPS = {
    "partials": "Convolve",
    "reduce/partials": "ReduceOnTile/InToIntermediateNoExchange/Reduce",
    "reduce/combine0": "ReduceFinalStage/IntermediateToOutput/Reduce",
    "reduce/combine1": "ReduceFinalStage/IntermediateToOutput/Reduce",
}


def instruction_of(op: Op) -> str:
    """The instruction that an op would be."""
    if op.kind in _CONVOLUTIONS:
        return "convolution"
    if op.kind == "matmul":
        return "dot"
    if op.kind.startswith("reduce_"):
        return "reduce"
    return _ELEMENTWISE.get(op.kind, (op.kind.replace("_", "-"),))[0]


def name_compute_sets(graph: Graph) -> Callable[[str], str]:
    """What compute sets are called, by their names in the modelled program."""
    prefixes = _prefixes(graph)

    def rename(name: str) -> str:
        end = name.rfind("/")
        while end > 0 and name[:end] not in prefixes:
            end = name.rfind("/", 0, end)
        if end <= 0:
            return name
        prefix, kind = prefixes[name[:end]]
        step = name[end + 1 :]
        last = _STEPS.get(step, "" if step == kind else step)
        return f"{prefix}/{last}".rstrip("/").replace("//", "/")

    return rename


def _prefixes(graph: Graph) -> Mapping[str, tuple[str, str]]:
    """How names of compute sets begin, and the kind of op, by the names of ops."""
    counts: Counter[str] = Counter()
    found: dict[str, tuple[str, str]] = {}
    makers: dict[str, Op] = {}
    seen: Graph | None = None
    for number, (op, body) in enumerate(all_ops(graph)):
        if body is not seen:  # names are those of one function
            makers = {name: each for each in body.ops for name in each.outputs}
            seen = body
        instruction = instruction_of(op)
        if _is_bias(op, body, makers):
            instruction = "fusion"
        if op.kind == "conv_input_grad" and not graph.is_training:
            instruction = "conv-with-reverse"
        if instruction in _KEPT:  # as it was made, with its number
            unique = f"{instruction}.{number}"
        else:
            count, counts[instruction] = counts[instruction], counts[instruction] + 1
            unique = f"{instruction}.{count}" if count else instruction
        begin = f"{_operator(op)}/{unique}/{_function(op, body)}"
        found[op.name] = begin.rstrip("/"), op.kind
    return found


_KEPT = {name for name, _ in _ELEMENTWISE.values()} | {"conv-with-reverse"}


def _operator(op: Op) -> str:
    """The operator of TensorFlow: without what its lowering added to the name."""
    scope, slash, name = op.name.rpartition("/")
    return scope + slash + name.partition(".")[0]


def _function(op: Op, graph: Graph) -> str:
    if op.kind in _ELEMENTWISE:
        return _ELEMENTWISE[op.kind][1]
    if op.kind in _NONLINEAR:
        return "Nonlinearity"
    if op.kind.removesuffix(_GRADIENT) in _NONLINEAR:
        return "NonLinearityGrad"
    if pool := _POOLS.get(op.kind.removesuffix(_GRADIENT)):
        return pool + _sizes(graph.signature(op).ints("kernel"))
    if op.kind in _CONVOLUTIONS:
        return _convolution(op, graph)
    return "Conv_1" if op.kind == "matmul" else ""


def _convolution(op: Op, graph: Graph) -> str:
    """A convolution by its kernel; for a kernel's gradient, that of the output is."""
    kernel = op.inputs[0 if op.kind == "conv_weight_grad" else 1]
    name = f"Conv_{_sizes(graph.type_of(kernel).shape[2:])}"
    stride = graph.signature(op).ints("stride")
    has_stride = op.kind == "conv" and any(step > 1 for step in stride)
    return f"{name}_stride{_sizes(stride)}" if has_stride else name


def _sizes(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


def _is_bias(op: Op, graph: Graph, makers: Mapping[str, Op]) -> bool:
    """Whether an op adds something small to a product or convolution."""
    if op.kind != "add" or len(op.inputs) != 2:
        return False
    big, small = sorted(op.inputs, key=lambda name: -graph.type_of(name).num_elements)
    maker = makers.get(big)
    while maker is not None and get_op(maker.kind).is_view:
        maker = makers.get(maker.inputs[0])
    is_other = graph.type_of(small).shape != graph.type_of(big).shape
    return is_other and maker is not None and maker.kind in _PRODUCTS
