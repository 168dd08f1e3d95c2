"""Straight-line Python from a traced graph: one statement per operator.

graph --render--> source --exec--> a function over flat tensors

Operators are called below their Python layer, and every tensor is let go of after its
last use. Small models spend a good part of a step between operators, so this counts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

_PLAIN = frozenset({int, str, bool, type(None)})


def straight_line(module: GraphModule) -> Callable[..., list[Any]]:
    """The module's graph as a function; its source is the function's docstring."""
    writer = _Writer(module)
    source = writer.render(module.graph)
    scope = writer.scope
    exec(compile(source, "<replay>", "exec"), scope)
    function = scope["replay"]
    function.__doc__ = source
    return function


class _Writer:
    """Renders a graph; `scope` has what the source refers to."""

    def __init__(self, module: GraphModule) -> None:
        self.scope: dict[str, Any] = {}
        self._module = module
        self._names: dict[int, str] = {}

    def render(self, graph: Graph) -> str:
        """The source of a function that returns what the graph returns."""
        dying = _last_uses(graph)
        arguments = [_variable(n) for n in graph.nodes if n.op == "placeholder"]
        lines = [f"def replay({', '.join(arguments)}):"]
        for node in graph.nodes:
            if node.op == "output":
                lines.append(f"    return {self._expression(node.args[0])}")
            elif node.op != "placeholder":
                lines.append(f"    {_variable(node)} = {self._value(node)}")
            if names := [_variable(n) for n in dying.get(node, ())]:
                # Memory is given back to the allocator here, where the next operator
                # can take it.
                lines.append(f"    {' = '.join(names)} = None")
        return "\n".join(lines) + "\n"

    def _value(self, node: Node) -> str:
        if node.op == "get_attr":
            return self._constant(_attribute(self._module, str(node.target)))
        if node.op != "call_function":
            raise AssertionError(f"a traced step has no {node.op}")
        arguments = [self._expression(argument) for argument in node.args]
        if node.target is operator.getitem:
            return f"{arguments[0]}[{arguments[1]}]"
        arguments += [f"{k}={self._expression(v)}" for k, v in node.kwargs.items()]
        return f"{self._function(node.target)}({', '.join(arguments)})"

    def _function(self, target: Any) -> str:
        if not isinstance(target, torch._ops.OpOverload):
            return self._constant(target, "function")
        # What OpOverload.__call__ calls.
        return self._constant(target._op, str(target).replace(".", "_"))

    def _expression(self, value: Any) -> str:
        if isinstance(value, Node):
            return _variable(value)
        if isinstance(value, list):
            return f"[{', '.join(map(self._expression, value))}]"
        if isinstance(value, tuple):
            return f"({''.join(self._expression(item) + ', ' for item in value)})"
        if isinstance(value, dict):
            items = (f"{key!r}: {self._expression(v)}" for key, v in value.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(value, slice):
            parts = (value.start, value.stop, value.step)
            return f"slice({', '.join(map(self._expression, parts))})"
        return repr(value) if _has_text(value) else self._constant(value)

    def _constant(self, value: Any, name: str = "constant") -> str:
        """The name of a value in the scope."""
        if id(value) not in self._names:
            # By identity: equal tensors are different constants, and `scope` keeps them
            # alive.
            self._names[id(value)] = f"{name}__{len(self.scope)}"
            self.scope[self._names[id(value)]] = value
        return self._names[id(value)]


def _variable(node: Node) -> str:
    return f"v_{node.name}"


def _has_text(value: Any) -> bool:
    """Whether Python reads the value from its text."""
    if type(value) is float:
        return math.isfinite(value)
    return type(value) in _PLAIN


def _attribute(module: torch.nn.Module, path: str) -> Any:
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """What nobody reads any more after each node; arguments are the caller's."""
    seen = {node for node in graph.nodes if node.op == "placeholder"}
    dying: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):
        if node.op == "output":
            seen.update(node.all_input_nodes)
            continue
        unread = [] if node in seen else [node]
        inputs = dict.fromkeys(n for n in node.all_input_nodes if n not in seen)
        dying[node] = unread + list(inputs)
        seen.update((node, *inputs))
    return dying
