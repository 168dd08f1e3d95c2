"""Everything this package asks of TensorFlow beyond its public names.

One file to look at when TensorFlow changes: bodies of functions, loops and branches,
contexts of old-style control flow, evaluation of single ops, shapes, user frames.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import (
    dtypes,
    func_graph,
    op_def_registry,
    ops,
    tensor_shape,
    tensor_util,
)
from tensorflow.python.ops import cond_v2, handle_data_util, while_v2

from popple.marks import HALF_PRODUCT, HALF_UPDATE

# Modules made from protocol buffers: their classes exist at run time only.
_XLA_DATA: Any = xla_data_pb2
_ATTR_VALUE: Any = attr_value_pb2

Operation: TypeAlias = Any
Tensor: TypeAlias = Any
TensorFlowGraph: TypeAlias = Any
Array: TypeAlias = "np.ndarray[Any, Any]"


def is_function_graph(graph: TensorFlowGraph) -> bool:
    """Whether a graph is the body of a function, which has inputs and outputs."""
    return isinstance(graph, func_graph.FuncGraph)


def find_attr(op: Operation, name: str) -> Any:
    """An attribute of an op, or None if it has none of that name."""
    try:
        return op.get_attr(name)
    except ValueError:
        return None


def name_of(op: Operation) -> str:
    """The name of an op, or of the one that it stands for."""
    own = find_attr(op, HALF_PRODUCT)
    return op.name if own is None else own.decode()


def type_of(op: Operation) -> str:
    """The type of an op, or of the operator whose operands it holds."""
    held = find_attr(op, HALF_UPDATE)
    return op.type if held is None else held.decode()


def operand_names(op: Operation) -> list[str]:
    """The names of an op's operands, or of the operator whose operands it holds."""
    return [each.name for each in op_def_registry.get(type_of(op)).input_arg]


def loop_graphs(op: Operation) -> tuple[TensorFlowGraph, TensorFlowGraph]:
    """Condition and body of a While op."""
    return (
        while_v2._get_graph(op, "cond", "_cond_graph"),
        while_v2._get_graph(op, "body", "_body_graph"),
    )


def branch_graphs(op: Operation) -> Sequence[TensorFlowGraph]:
    """Branches of an If (then, else) or a Case op."""
    return cond_v2.get_func_graphs(op)


def called_graph(op: Operation) -> tuple[str, TensorFlowGraph | None]:
    """Name and body of the function that a call op calls, None without a body."""
    name = op.get_attr("f").name
    function = op.graph._get_function(name)
    return name, None if function is None else function.graph


def captured_variables(graph: TensorFlowGraph) -> dict[int, tuple[str, bool]]:
    """The variables a function uses, by the id of their handles.

    Each with its name and whether training may change it. Variables that are gone are
    left out: their handles may live on in the graph.
    """
    found = (reference() for reference in graph._weak_variables)
    return {
        id(variable.handle): (variable.name.partition(":")[0], variable.trainable)
        for variable in found
        if variable is not None
    }


def while_contexts(op: Operation) -> list[Any]:
    """The old-style loops an op lies in, outermost first."""
    found: list[Any] = []
    current = op._get_control_flow_context()
    while current is not None:
        if current.IsWhileContext():
            found.append(current)
        current = current.outer_context
    return found[::-1]


def cond_contexts(op: Operation) -> Iterator[tuple[Tensor, int]]:
    """Predicate and number (1: taken if true) of the old-style branches around an op.

    The switches that guard a branch count as inside it.
    """
    current = op._get_control_flow_context()
    while current is not None:
        if current.IsCondContext():
            yield current.pred, current.branch
        current = current.outer_context


def original_op(op: Operation) -> Operation | None:
    """The forward op that `tf.gradients` made this op from."""
    return op._original_op


def user_frames(op: Operation) -> list[tuple[str, int]]:
    """File and line of the frames that made an op, TensorFlow's left out."""
    return [(f.filename, f.lineno) for f in op.traceback.get_user_frames()]


def sharded_chip(encoded: bytes) -> int | None:
    """The device of an encoded OpSharding that puts an op on one device.

    Device -1 stands for all of them.
    """
    sharding = _XLA_DATA.OpSharding.FromString(encoded)
    devices = sharding.tile_assignment_devices
    return devices[0] if len(devices) == 1 and devices[0] >= 0 else None


def is_trainable(handle: Operation) -> bool:
    """Whether training may change the variable of an old-style graph."""
    variables = handle.graph.get_collection(ops.GraphKeys.TRAINABLE_VARIABLES)
    return any(variable.handle.op is handle for variable in variables)


def constant_array(op: Operation) -> Array:
    """The value of a Const op."""
    return tensor_util.MakeNdarray(op.get_attr("value"))


def evaluate(op: Operation, inputs: Sequence[Array]) -> list[Array] | None:
    """What an op gives for these arrays; None if it cannot be run by itself."""
    attrs = _plain_attrs(op)
    if attrs is None:
        return None
    # Under the default graph of a program the op would be added to it instead of run.
    with context.eager_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = [
            ops.convert_to_tensor(array, dtype=tensor.dtype)
            for array, tensor in zip(inputs, op.inputs, strict=True)
        ]
        kind, count = op.type.encode(), len(op.outputs)
        results = execute.execute(kind, count, tensors, attrs, context.context())
    return [np.asarray(result.numpy()) for result in results]


def _plain_attrs(op: Operation) -> tuple[Any, ...] | None:
    """Attributes as the runtime takes them; None if one is a function or a tensor."""
    found: list[Any] = []
    for definition in op.op_def.attr:
        if definition.type in ("func", "list(func)", "tensor", "shape", "list(shape)"):
            return None
        found += [definition.name, _plain(op.get_attr(definition.name))]
    return tuple(found)


def _plain(value: Any) -> Any:
    if isinstance(value, dtypes.DType):
        return value.as_datatype_enum
    return [_plain(item) for item in value] if isinstance(value, list) else value


def static_shape(tensor: Tensor) -> tuple[int, ...] | None:
    """The shape of a tensor, if TensorFlow knows all of it."""
    shape = tensor.shape
    return tuple(shape.as_list()) if shape.is_fully_defined() else None


def handle_data(handle: Tensor) -> tuple[Any, tuple[int, ...]] | None:
    """Type and shape of the variable behind a handle, if all is known."""
    data = handle_data_util.get_resource_handle_data(handle)
    if data is None or not data.is_set or not data.shape_and_type:
        return None
    shape: Any = tensor_shape.TensorShape(data.shape_and_type[0].shape)
    if not shape.is_fully_defined():
        return None
    return dtypes.as_dtype(data.shape_and_type[0].dtype), tuple(shape.as_list())


ShapedInput: TypeAlias = "Array | tuple[int, ...] | None"


def infer_shapes(
    op: Operation, inputs: Sequence[ShapedInput]
) -> list[tuple[int, ...] | None]:
    """Shapes of the outputs of an op whose inputs have these values or shapes."""
    # A graph to throw away: asking for a shape must not leave ops in the user's graph.
    scratch = func_graph.FuncGraph("shapes")
    with scratch.as_default():
        given = [
            _stand_in(tensor, known)
            for tensor, known in zip(op.inputs, inputs, strict=True)
        ]
        attrs = dict(op.node_def.attr)
        types = [output.dtype for output in op.outputs]
        made = scratch._create_op_internal(op.type, given, types, attrs=attrs)
    return [static_shape(output) for output in made.outputs]


def _stand_in(tensor: Tensor, known: ShapedInput) -> Tensor:
    if isinstance(known, np.ndarray):
        return ops.convert_to_tensor(known, dtype=tensor.dtype)
    shape = tensor.shape if known is None else tensor_shape.TensorShape(known)
    graph = ops.get_default_graph()
    attrs = {
        "dtype": _attr(type=tensor.dtype.as_datatype_enum),
        "shape": _attr(shape=shape.as_proto()),
    }
    made = graph._create_op_internal("Placeholder", [], [tensor.dtype], attrs=attrs)
    return made.outputs[0]


def _attr(**value: Any) -> Any:
    return _ATTR_VALUE.AttrValue(**value)
