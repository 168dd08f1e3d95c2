"""Common lowerings: one op for one operator, a view, the same value, the generic op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch.fx import Node

from popple.capture.torch.builder import NodeContext
from popple.graph import Attr, TensorType

Lowering = Callable[[NodeContext], None]
AttrsOf = Callable[[NodeContext], dict[str, Attr]]


def no_attrs(_: NodeContext) -> dict[str, Attr]:
    """The attributes of ops that have none."""
    return {}


def one_op(kind: str, attrs_of: AttrsOf = no_attrs) -> Lowering:
    """All tensor arguments in, all tensor results out, one op of this kind."""

    def lower(context: NodeContext) -> None:
        emit_one(context, kind, attrs_of(context))

    return lower


def emit_one(
    context: NodeContext,
    kind: str,
    attrs: Mapping[str, Attr] | None = None,
    sources: Sequence[Node | str] | None = None,
) -> None:
    """Emit one op for the node; one that overwrites shares memory and takes over.

    `sources` are the op's inputs where they are not all tensor arguments.
    """
    sources = context.inputs() if sources is None else sources
    types = context.result_types()
    storage = _find_memory(context)
    names = context.emit(kind, sources, types, storage=storage, attrs=attrs)
    if storage:
        # Later readers of the overwritten tensor read the new value.
        context.builder.bind(context.overwritten[0], names[0])
    context.finish_all(names)


def _find_memory(context: NodeContext) -> str:
    """The value whose memory the node's one result goes to, if there is one."""
    targets, types = context.overwritten, context.result_types()
    if len(targets) != 1 or not isinstance(targets[0], Node) or not types:
        return ""
    name = context.builder.name_of(targets[0])
    held = context.builder.values[name].type
    # torch resizes an `out` tensor of another size: its memory is then not shared.
    return name if held.num_elements == types[0].num_elements else ""


def view(kind: str, attrs_of: AttrsOf = no_attrs) -> Lowering:
    """Results that share memory with the first argument."""

    def lower(context: NodeContext) -> None:
        source = context.inputs()[0]
        name = context.builder.name_of(source)
        attrs = attrs_of(context)
        results = [
            context.emit(
                kind, [source], [shown], suffix=suffix, storage=name, attrs=attrs
            )
            for suffix, shown in _suffixed(context)
        ]
        context.finish_all([names[0] for names in results])

    return lower


def _suffixed(context: NodeContext) -> list[tuple[str, TensorType]]:
    types = context.result_types()
    if len(types) == 1:
        return [("", types[0])]
    return [(f".{index}", kind) for index, kind in enumerate(types)]


def same_value(context: NodeContext) -> None:
    """The operator changes nothing the machine would notice."""
    context.finish(context.builder.name_of(context.inputs()[0]))


def lower_generic(context: NodeContext) -> None:
    """An operator without an entry: modelled by what it reads and writes."""
    emit_one(context, "generic", {"framework_op": context.operator})
