"""GraphBuilder and NodeContext: append ops and values to a Graph while lowering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from popple.capture.torch.tags import Tag
from popple.graph import (
    NO_NOTES,
    Attr,
    DType,
    Graph,
    Notes,
    Op,
    Phase,
    Role,
    TensorType,
    Value,
    get_op,
)
from popple.quick import replaced

# Types that are not listed are stored as integers of their size.
_DTYPES = {
    torch.float32: DType.F32,
    torch.float64: DType.F32,  # there is no 64-bit type on a tile
    torch.float16: DType.F16,
    torch.bfloat16: DType.BF16,
    torch.int64: DType.I32,
    torch.int32: DType.I32,
    torch.int16: DType.I16,
    torch.int8: DType.I8,
    torch.uint8: DType.U8,
    torch.uint32: DType.U32,
    torch.uint64: DType.U32,
    torch.bool: DType.BOOL,
    torch.float8_e4m3fn: DType.F8,
    torch.float8_e4m3fnuz: DType.F8,
    torch.float8_e5m2: DType.F8,
    torch.float8_e5m2fnuz: DType.F8,
}
_DTYPES_BY_SIZE = {1: DType.U8, 2: DType.I16}


def tensor_type(tensor: Tensor) -> TensorType:
    """The machine's type of a (fake) tensor; complex numbers become pairs."""
    shape = tuple(int(dim) for dim in tensor.shape)
    if tensor.is_complex():
        return TensorType(DType.F32, (*shape, 2))
    default = _DTYPES_BY_SIZE.get(tensor.dtype.itemsize, DType.I32)
    return TensorType(_DTYPES.get(tensor.dtype, default), shape)


@dataclass
class GraphBuilder:
    """Ops and values so far, and which value each traced node stands for.

    `sources` are the nodes that made values. `functions` are those that ops so far run;
    a builder that `is_function` writes one, whose ops stand nowhere in particular.
    """

    values: dict[str, Value] = field(default_factory=dict[str, Value])
    ops: list[Op] = field(default_factory=list[Op])
    sources: dict[str, Node] = field(default_factory=dict[str, Node])
    functions: dict[str, Graph] = field(default_factory=dict[str, Graph])
    is_function: bool = False
    _names: dict[Node, str | list[str | None]] = field(default_factory=dict[Any, Any])
    _makers: dict[str, Op] = field(default_factory=dict[str, Op])
    _positions: dict[str, int] = field(default_factory=dict[str, int])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _notes: dict[int, Notes] = field(default_factory=dict[int, Notes])

    def declare(self, node: Node, name: str, tensor: Tensor, role: Role) -> None:
        """A value that exists before the first op."""
        self.finish(node, self._add(name, tensor_type(tensor), role).name)

    def name_of(self, node: Node) -> str:
        """Name of the value of a node with one tensor result."""
        found = self._names[node]
        if not isinstance(found, str):
            raise TypeError(f"{node} has several results")
        return found

    def has_name(self, node: Node) -> bool:
        """Whether a node stands for one value."""
        return isinstance(self._names.get(node), str)

    def find_maker(self, node: Node) -> Op | None:
        """The op that made a node's value, if an op did."""
        found = self._names.get(node) or []
        names = [found] if isinstance(found, str) else found
        makers = (self._makers.get(name) for name in names if name is not None)
        return next((op for op in makers if op is not None), None)

    def bind(self, node: Node, names: str | list[str | None]) -> None:
        """Let a node stand for values already there."""
        self._names[node] = names

    def finish(self, node: Node, names: str | list[str | None]) -> None:
        """Let a node stand for the values it makes."""
        self.bind(node, names)
        if isinstance(names, str):
            self.sources.setdefault(names, node)

    def alias_item(self, node: Node, source: Node, index: int) -> None:
        """`source[index]` of a node with several results; None stands for nothing."""
        items = self._names.get(source)
        if isinstance(items, list) and (name := items[index]) is not None:
            self.finish(node, name)

    def note(self, name: str, notes: Notes, families: frozenset[str] | None) -> None:
        """Add notes to the op that made a value, and to its gradient's ops.

        They go to the nearest op of these families (None: of any): what was only
        viewed or had a bias added since is looked through. Without such an op there
        is no effect.
        """
        found = self._find_noted(name, families)
        if found is None:
            return
        op = self.ops[found]
        self.ops[found] = replaced(op, notes=op.notes.updated(notes))
        # Gradients are written later, with the number of this op's tag.
        number = self._numbers[op.outputs[0]]
        self._notes[number] = self._notes.get(number, NO_NOTES).updated(notes)

    def _find_noted(self, name: str, families: frozenset[str] | None) -> int | None:
        index = self._positions.get(name)
        while index is not None:
            definition = get_op(self.ops[index].kind)
            if families is None or definition.family in families:
                return index
            # Lowering adds a bias as an op of its own, behind the product that the note
            # is meant for.
            if not (definition.is_view or definition.name == "add"):
                return None
            index = self._positions.get(self.ops[index].inputs[0])
        return None

    def inner(self) -> GraphBuilder:
        """A builder for a function of the same graph."""
        return GraphBuilder(functions=self.functions, is_function=True)

    def add_function(self, name: str, body: GraphBuilder, outputs: list[str]) -> str:
        """Make a function of what another builder wrote; gives its own name."""
        unique, number = name, 1
        while unique in self.functions:
            unique, number = f"{name}.{number}", number + 1
        ops, results = tuple(body.ops), tuple(outputs)
        self.functions[unique] = Graph(unique, body.values, ops, results)
        return unique

    def newest_of(self, name: str) -> str:
        """The value written last into the memory of a value."""
        for op in reversed(self.ops):
            # Views write nothing, though they share the memory.
            if get_op(op.kind).is_view:
                continue
            for output in reversed(op.outputs):
                if self._root(output) == self._root(name):
                    return output
        return name

    def _root(self, name: str) -> str:
        while storage := self.values[name].storage:
            name = storage
        return name

    def emit(
        self,
        op: Op,
        types: Sequence[TensorType],
        storage: str | Sequence[str] = "",
        number: int = -1,
    ) -> list[str]:
        """Append an op whose outputs have these types; their names.

        They share the memory `storage`, one for all or each its own. `number` is that
        of its tag: what is noted about it, gradients inherit.
        """
        storages = [storage] * len(types) if isinstance(storage, str) else storage
        # The forward op was changed where it stands when the note was met; ops of the
        # backward pass come later and share its number.
        if op.phase is not Phase.FORWARD and number in self._notes:
            op = replaced(op, notes=op.notes.updated(self._notes[number]))
        names: list[str] = []
        for index, kind in enumerate(types):
            base = op.name if len(types) == 1 else f"{op.name}.{index}"
            value = self._add(base, kind, Role.ACTIVATION, storages[index])
            self._makers[value.name] = op
            self._positions[value.name] = len(self.ops)
            self._numbers[value.name] = number
            names.append(value.name)
        self.ops.append(replaced(op, outputs=tuple(names)))
        return names

    def _add(self, name: str, kind: TensorType, role: Role, storage: str = "") -> Value:
        # A module that is called twice makes nodes of one name in two places.
        unique, number = name, 1
        while unique in self.values:
            unique, number = f"{name}.{number}", number + 1
        value = Value(unique, kind, role, storage)
        self.values[unique] = value
        return value


@dataclass(frozen=True)
class NodeContext:
    """One traced node being lowered, with its tag and place."""

    builder: GraphBuilder
    node: Node
    tag: Tag
    chip: int
    stage: int

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments of the operator."""
        return self.node.args

    def arg(self, index: int, default: Any = None) -> Any:
        """One positional argument, or `default` if it was left out."""
        return self.node.args[index] if index < len(self.node.args) else default

    @property
    def operator(self) -> str:
        """The operator's full name: `aten.add.Tensor`."""
        return _full_name(self.node.target)

    @property
    def is_in_place(self) -> bool:
        """Whether the operator overwrites its first argument: `aten.add_.Tensor`."""
        return _is_in_place(self.node.target)

    def tensor(self, node: Any) -> Tensor:
        """The fake tensor of a node."""
        return node.meta["val"]

    @property
    def overwritten(self) -> list[Any]:
        """What the operator writes its results to: an argument, or `out`."""
        if self.is_in_place:
            return [self.arg(0)]
        declared = getattr(self.node.target, "_schema", None)
        outs = [a.name for a in declared.arguments if a.is_out] if declared else []
        return [self.node.kwargs[name] for name in outs if name in self.node.kwargs]

    def inputs(self) -> list[Node]:
        """Nodes of the tensors read, in order; one given twice is there twice."""
        # An operator in place reads its first argument; an `out` is only written.
        unread = [] if self.is_in_place else self.overwritten
        named = [value for value in self.node.kwargs.values() if value not in unread]
        nodes = _nodes_in((self.node.args, named))
        return [node for node in nodes if isinstance(node.meta.get("val"), Tensor)]

    def type_of(self, node: Any) -> TensorType:
        """Machine type of a node's tensor."""
        return tensor_type(self.tensor(node))

    def result_tensors(self) -> list[Tensor | None]:
        """The operator's results as fake tensors; None where it returned none."""
        value = self.node.meta.get("val")
        if isinstance(value, (list, tuple)):
            return [item if isinstance(item, Tensor) else None for item in value]
        return [value] if isinstance(value, Tensor) else []

    def result_types(self) -> list[TensorType]:
        """Types of the tensor results."""
        return [tensor_type(t) for t in self.result_tensors() if t is not None]

    def emit(
        self,
        kind: str,
        inputs: Sequence[Node | str],
        types: Sequence[TensorType],
        *,
        suffix: str = "",
        storage: str | Sequence[str] = "",
        attrs: Mapping[str, Attr] | None = None,
    ) -> list[str]:
        """Append one op of this node; returns the names of its outputs."""
        names = tuple(
            source if isinstance(source, str) else self.builder.name_of(source)
            for source in inputs
        )
        path = filter(None, [self.tag.module, self.tag.scope, self.node.name])
        op = Op(
            name="/".join(path) + suffix,
            kind=kind,
            inputs=names,
            outputs=(),
            attrs=attrs or {},
            notes=self.tag.notes,
            phase=self.tag.phase,
            chip=self.chip,
            stage=self.stage,
            module=self.tag.module,
            line=self.tag.line,
        )
        return self.builder.emit(op, types, storage, self.tag.number)

    def finish(self, names: str | list[str | None]) -> None:
        """The node stands for these values."""
        self.builder.finish(self.node, names)

    def finish_all(self, names: Sequence[str]) -> None:
        """The node's tensor results are these values, in order."""
        results = self.result_tensors()
        if not isinstance(self.node.meta.get("val"), (list, tuple)):
            if names:
                self.finish(names[0])
            return
        supply = iter(names)
        self.finish([next(supply) if r is not None else None for r in results])


# A step has a hundred different operators, and uses each hundreds of times.
@lru_cache
def _full_name(operator: Any) -> str:
    return str(operator)


@lru_cache
def _is_in_place(operator: Any) -> bool:
    base = ".".join(_full_name(operator).split(".")[:2])
    return base.endswith("_") and not base.endswith("__")


def _nodes_in(argument: Any) -> Iterator[Node]:
    """The nodes among arguments of a node, in order."""
    if isinstance(argument, Node):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for each in argument:
            yield from _nodes_in(each)
    elif isinstance(argument, dict):
        yield from _nodes_in(list(argument.values()))
