"""Record ordinary operators of a trace, without the tracer's preparations for others.

At every operator `make_fx` prepares for symbolic sizes, subclasses of tensors,
constants and decompositions, which takes longer than all the rest of a trace. An aten
operator on tensors of the trace needs none of it: it becomes the same node here. For
whatever else comes along, `record` returns None and the tracer sees it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Node, Proxy
from torch.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    get_proxy_slot,
    set_proxy_slot,
)

from popple.capture.torch.known_results import KnownResults, Result
from popple.capture.torch.rewrites import DECOMPOSITIONS

_PLAIN = (
    type(None),
    bool,
    int,
    float,
    str,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
_TENSORS = ("Tensor", "List[Tensor]")


class Recorded(NamedTuple):
    """What an operator returned, and the nodes that it added."""

    result: Any
    nodes: list[Node]


class _UnusualError(Exception):
    """An argument that only the tracer knows how to take."""


def record(
    mode: ProxyTorchDispatchMode,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    known: KnownResults,
) -> Recorded | None:
    """Run an operator and add its nodes, or None if it is not an ordinary one."""
    if not isinstance(func, OpOverload) or not _is_ordinary(func):
        return None
    try:
        node_args = tuple(_argument(each, mode.tracer) for each in args)
        node_kwargs = {k: _argument(each, mode.tracer) for k, each in kwargs.items()}
    except _UnusualError:
        return None
    result = known.run(func, args, kwargs)
    nodes = list(_nodes_of(mode, func, node_args, node_kwargs, result))
    return Recorded(result.value, nodes)


@functools.cache
def _is_ordinary(func: OpOverload) -> bool:
    """Whether an operator of aten returns tensors and is not made of others."""
    if func.namespace != "aten" or func in DECOMPOSITIONS:
        return False
    # The tracer makes copies of lifted constants, and looks at the values of some.
    is_lifted = func.overloadpacket is torch.ops.aten.lift_fresh
    reads_values = torch.Tag.data_dependent_output in func.tags
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    is_composite = func.has_kernel_for_dispatch_key(composite)
    if is_lifted or reads_values or is_composite:
        return False
    returned = func._schema.returns
    return bool(returned) and all(str(each.type) in _TENSORS for each in returned)


def _argument(value: Any, tracer: Any) -> Any:
    """An operator's argument with nodes for tensors."""
    if type(value) is FakeTensor:
        slot = get_proxy_slot(value, tracer, None)
        if slot is None or slot.constant is not None:
            raise _UnusualError
        return slot.proxy.node
    if type(value) in _PLAIN:
        return value
    if type(value) in (list, tuple):
        return type(value)(_argument(each, tracer) for each in value)
    raise _UnusualError


def _nodes_of(
    mode: ProxyTorchDispatchMode,
    func: OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Result,
) -> Iterator[Node]:
    """The node of an operator, and one for each of several results."""
    graph = mode.tracer.graph
    # The tracer's name: that of the operator, without its overload.
    name = graph._target_to_str(func.overloadpacket.__name__)
    called = graph.create_node("call_function", func, args, kwargs, name)
    called.meta["val"] = result.shown
    yield called
    if isinstance(result.value, torch.Tensor):
        _track(mode, result.value, called)
        return
    for index, (each, shown) in enumerate(zip(result.value, result.shown, strict=True)):
        node = graph.call_function(operator.getitem, (called, index))
        if each is not None:
            node.meta["val"] = shown
            _track(mode, each, node)
        yield node


def _track(mode: ProxyTorchDispatchMode, tensor: torch.Tensor, node: Node) -> None:
    """Let the tracer know the node of a tensor, also of one written in place."""
    # The class of slots is the tracer's own: the module does not export it.
    from torch.fx.experimental.proxy_tensor import _ProxyTensor

    set_proxy_slot(tensor, mode.tracer, _ProxyTensor(Proxy(node, mode.tracer), None))
