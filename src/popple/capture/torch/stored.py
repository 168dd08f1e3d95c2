"""Traced steps as data: JSON and raw numbers, to be kept in a file and read again.

    store_step    TracedStep --> StoredStep, or NotStorable
    read_step     StoredStep --> TracedStep, or ValueError
    store_graph   only the operators of a graph, for a run
    read_graph    the same graph, ready to be made into a function

Nodes are rows of a table: operator, name, arguments, and of the traced value its type,
layout and memory. Operators are written by name and looked up among those that are
registered with PyTorch. A reader believes nothing: every name, number and reference is
checked before a graph is made of it, because the graph becomes source code later.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.node import has_side_effect

from popple.capture.torch.control import TracedBranch, TracedLoop
from popple.capture.torch.stored_values import (
    NotStorable,
    Tables,
    check,
    check_operator,
    find_dtype,
    find_operator,
    is_identifier,
    pack,
    unpack,
    whole,
    whole_list,
)
from popple.capture.torch.structures import pack_structure, unpack_structure
from popple.capture.torch.tags import Block, Tag
from popple.capture.torch.trace import TracedStep
from popple.errors import PoppleError
from popple.graph import Phase, parse_notes, render_notes
from popple.marks import HOST_CALL, NOTES, TAG, operator_name

Row = list[Any]

_GETITEM, _LOOP = "getitem", "loop"
_BRANCH_FIELDS = ("then", "otherwise", "then_results", "other_results", "results")
_DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class StoredStep:
    """A step as JSON, and its constants as raw tensors on the CPU."""

    data: dict[str, Any]
    constants: Mapping[str, Tensor]


def store_step(step: TracedStep) -> StoredStep:
    """The step as data; NotStorable if a part of it has no such form."""
    writer = _Writer()
    graph = writer.graph(step.graph_module.graph, step.branches)
    names = dict.fromkeys(
        str(node.target) for node in step.graph_module.graph.find_nodes(op="get_attr")
    )
    constants = {name: _constant(step.graph_module, name) for name in names}
    data = {
        "parameters": list(step.parameters),
        "buffers": list(step.buffers),
        "num_inputs": step.num_inputs,
        "trainable": list(step.trainable),
        "num_outputs": step.num_outputs,
        "example": pack_structure(step.example),
        "tags": [_tag_row(tag) for tag in writer.tags.rows],
        "storages": writer.storage_sizes,
        "operators": writer.operators.rows,
        "graph": graph,
    }
    return StoredStep(data, constants)


def read_step(stored: StoredStep) -> TracedStep:
    """The step that was stored; ValueError if the data are not of one."""
    with _explained():
        return _read_step(stored)


def store_graph(graph: Graph) -> dict[str, Any]:
    """Operators and arguments of a graph, without what was traced about its values."""
    writer = _Writer(has_values=False)
    rows = writer.graph(graph, ())
    return {"operators": writer.operators.rows, "graph": rows}


def read_graph(data: dict[str, Any], constants: Mapping[str, Tensor]) -> GraphModule:
    """The graph that was stored, with its constants; ValueError if it is none."""
    with _explained():
        reader = _Reader({**data, "tags": [], "storages": []})
        return reader.graph(data["graph"], _root_of(constants))[0]


@contextmanager
def _explained() -> Iterator[None]:
    """Whatever goes wrong with data of the wrong form is ValueError."""
    try:
        yield
    except (PoppleError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"the step is malformed ({what})") from error


# -- writing


class _Writer:
    """Writes graphs; the tables are shared by a step and the bodies of its loops."""

    def __init__(self, has_values: bool = True) -> None:
        self._has_values = has_values
        self.tags: Tables[Tag] = Tables()
        self.operators: Tables[str] = Tables()
        self.storage_sizes: list[int] = []
        self._storages: dict[int, int] = {}

    def graph(self, graph: Graph, branches: Sequence[TracedBranch]) -> dict[str, Any]:
        """The nodes of a graph as rows, its branches by numbers of nodes."""
        numbers = {node: index for index, node in enumerate(graph.nodes)}
        return {
            "nodes": [self._row(node, numbers) for node in graph.nodes],
            "branches": [_branch_row(branch, numbers) for branch in branches],
        }

    def _row(self, node: Node, numbers: Mapping[Node, int]) -> Row:
        row = [
            node.op,
            node.name,
            self._target(node),
            pack(list(node.args), numbers.__getitem__),
            [[key, pack(v, numbers.__getitem__)] for key, v in node.kwargs.items()],
        ]
        if not self._has_values:
            return row
        tag, notes = node.meta.get(TAG), node.meta.get(NOTES)
        return [
            *row,
            self._value(node.meta.get("val")),
            None if tag is None else self.tags.number(tag),
            None if notes is None else render_notes(notes),
        ]

    def _target(self, node: Node) -> Any:
        target: Any = node.target
        if node.op != "call_function":
            return str(target)
        if isinstance(target, TracedLoop):
            return {_LOOP: self._loop(target)}
        if target is operator.getitem:
            return self.operators.number(_GETITEM)
        check_operator(target)
        if operator_name(target) == HOST_CALL:
            raise NotStorable("it calls a function of the host")
        return self.operators.number(str(target))

    def _loop(self, loop: TracedLoop) -> dict[str, Any]:
        return {
            "body": self.graph(loop.body.graph, loop.branches),
            "count": loop.count,
            "num_carried": loop.num_carried,
            "written": list(loop.written),
        }

    def _value(self, value: Any) -> Any:
        """The type, layout and memory of what a node stands for."""
        if value is None or type(value) in (bool, int, float):
            return None
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        if not isinstance(value, Tensor):
            raise NotStorable(f"it computes a {type(value).__name__}")
        if value.layout is not torch.strided or value.is_conj() or value.is_neg():
            raise NotStorable("it computes a tensor that is not dense")
        storage = value.untyped_storage()
        key = storage._cdata
        if key not in self._storages:
            self._storages[key] = len(self.storage_sizes)
            self.storage_sizes.append(storage.nbytes())
        return {
            "d": str(value.dtype).removeprefix("torch."),
            "s": list(value.shape),
            "t": list(value.stride()),
            "o": value.storage_offset(),
            "m": self._storages[key],
            "v": value.device.type,
        }


def _constant(module: GraphModule, path: str) -> Tensor:
    found: Any = operator.attrgetter(path)(module)
    is_plain = type(found) in (Tensor, nn.Parameter) and found.layout is torch.strided
    if not is_plain or found.is_conj() or found.is_neg() or found.is_quantized:
        raise NotStorable(f"its constant {path} is a {type(found).__name__}")
    return found.detach().cpu()


def _branch_row(branch: TracedBranch, numbers: Mapping[Node, int]) -> dict[str, Any]:
    def each(nodes: Sequence[Node]) -> list[int]:
        return [numbers[node] for node in nodes]

    row = {name: each(getattr(branch, name)) for name in _BRANCH_FIELDS}
    return {**row, "condition": numbers[branch.condition]}


def _tag_row(tag: Tag) -> Row:
    block = tag.block
    place = None if block is None else [block.name, block.chip, block.stage]
    notes = render_notes(tag.notes)
    texts = [tag.module, tag.line, tag.scope, notes]
    return [tag.phase.value, place, *texts, tag.number]


# -- reading


def _read_step(stored: StoredStep) -> TracedStep:
    data = stored.data
    reader = _Reader(data)
    module, branches = reader.graph(data["graph"], _root_of(stored.constants))
    parameters, buffers = _names(data["parameters"]), _names(data["buffers"])
    trainable = _names(data["trainable"])
    step = TracedStep(
        graph_module=module,
        parameters=parameters,
        buffers=buffers,
        num_inputs=whole(data["num_inputs"]),
        trainable=trainable,
        num_outputs=whole(data["num_outputs"]),
        example=unpack_structure(data["example"]),
        branches=branches,
    )
    _check_step(step)
    return step


def _root_of(constants: Mapping[str, Tensor]) -> nn.Module:
    """A module with the constants of a graph."""
    root = nn.Module()
    for name, tensor in constants.items():
        check(is_identifier(name), f"{name!r} is no name of a constant")
        check(not hasattr(root, name), f"{name!r} cannot be the name of a constant")
        # As a plain attribute: registered buffers would be the module's own state.
        object.__setattr__(root, name, tensor)
    return root


def _check_step(step: TracedStep) -> None:
    """As many arguments and results as the names say, all of them tensors."""
    graph = step.graph_module.graph
    held = len(step.parameters) + len(step.buffers) + step.num_inputs
    given = graph.find_nodes(op="placeholder")
    check(len(given) in (held, held + 1), "it has another number of arguments")
    check(
        all(isinstance(node.meta["val"], Tensor) for node in given),
        "an argument is no tensor",
    )
    results: Any = graph.output_node().args[0]
    count = step.num_outputs + len(step.trainable)
    check(isinstance(results, list) and len(results) == count, "its results differ")
    check(set(step.trainable) <= set(step.parameters), "it trains unknown parameters")
    outputs = results[: step.num_outputs]
    tensors = [n.meta["val"] for n in results if isinstance(n, Node)]
    check(all(isinstance(n, Node) for n in outputs), "an output is missing")
    check(all(isinstance(t, Tensor) for t in tensors), "a result is no tensor")


def _names(value: Any) -> tuple[str, ...]:
    is_names = isinstance(value, list) and all(isinstance(n, str) for n in value)
    check(is_names and len(set(value)) == len(value), "names are missing or repeated")
    return tuple(value)


class _Reader:
    """Reads graphs of one step; what several nodes share is made once."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._tags = [_read_tag(row) for row in data["tags"]]
        self._operators = [_find_target(name) for name in data["operators"]]
        self._storages = [
            torch.empty(whole(size), dtype=torch.uint8, device="meta").untyped_storage()
            for size in data["storages"]
        ]

    @cached_property
    def _mode(self) -> FakeTensorMode:
        # Making one imports torch._dynamo, which takes a second: graphs that only run
        # have no values and need none.
        return FakeTensorMode(allow_non_fake_inputs=True)

    def graph(
        self, data: dict[str, Any], root: nn.Module
    ) -> tuple[GraphModule, tuple[TracedBranch, ...]]:
        """A graph with its constants, and its branches."""
        graph = Graph()
        nodes: list[Node] = []
        for row in data["nodes"]:
            nodes.append(self._node(graph, nodes, row, root))
        ops = [node.op for node in nodes]
        num_arguments = ops.count("placeholder")
        check(set(ops[:num_arguments]) <= {"placeholder"}, "arguments come late")
        check(ops[-1:] == ["output"] and ops.count("output") == 1, "it has no end")
        branches = tuple(_read_branch(row, nodes) for row in data["branches"])
        # Lazily: the module's own code is generated when somebody calls it, and what
        # runs steps never does.
        return _LazyGraphModule(root, graph), branches

    def _node(self, graph: Graph, nodes: list[Node], row: Row, root: nn.Module) -> Node:
        op, name, target, args, kwargs, *traced = row
        check(is_identifier(name), f"{name!r} is no name of a node")
        found_args = unpack(args, nodes)
        pairs = [(key, unpack(item, nodes)) for key, item in kwargs]
        check(isinstance(found_args, list), "arguments are no list")
        found = self._target(op, target, found_args, dict(pairs), root)
        node = graph.create_node(op, found, tuple(found_args), dict(pairs), name)
        check(node.name == name, f"the name {name!r} is taken")
        if traced:
            self._note(node, *traced)
        return node

    def _note(self, node: Node, value: Any, tag: Any, notes: Any) -> None:
        """What was traced about a node."""
        if value is not None:
            node.meta["val"] = self._value(value)
        if tag is not None:
            node.meta[TAG] = self._tags[whole(tag)]
        if notes is not None:
            node.meta[NOTES] = parse_notes(notes)

    def _target(
        self,
        op: str,
        target: Any,
        args: list[Any],
        kwargs: dict[str, Any],
        root: nn.Module,
    ) -> Any:
        if op == "call_function":
            return self._callable(target, args, kwargs)
        check(not kwargs, f"{op} takes no names")
        if op == "output":
            check(len(args) == 1 and isinstance(args[0], list), "the end has no list")
            flat = args[0]
            check(all(n is None or isinstance(n, Node) for n in flat), "odd results")
            return "output"
        check(op in ("placeholder", "get_attr") and not args, f"there is no {op}")
        check(is_identifier(target), f"{target!r} is no name")
        is_constant = isinstance(vars(root).get(target), Tensor)
        check(op == "placeholder" or is_constant, f"no constant {target}")
        return target

    def _callable(self, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(target, dict):
            check(not kwargs, "a loop takes no names")
            return self._loop(target[_LOOP], args)
        found = self._operators[whole(target)]
        if found is operator.getitem:
            is_item = len(args) == 2 and isinstance(args[0], Node) and not kwargs
            check(is_item and type(args[1]) is int, "a result is taken oddly")
        else:
            check_operator(found, args, kwargs)
        return found

    def _loop(self, data: dict[str, Any], args: list[Any]) -> TracedLoop:
        body, branches = self.graph(data["body"], nn.Module())
        num_arguments = len(body.graph.find_nodes(op="placeholder"))
        check(all(isinstance(arg, Node) for arg in args), "a loop takes tensors only")
        check(num_arguments == len(args), "a loop has another number of arguments")
        carried, written = whole(data["num_carried"]), whole_list(data["written"])
        check(carried <= num_arguments, "a loop carries more than it takes")
        check(all(carried <= w < num_arguments for w in written), "a loop writes oddly")
        loop = TracedLoop(body, whole(data["count"]), carried, tuple(written), branches)
        calls = [n for n in body.graph.nodes if n.op == "call_function"]
        if written or any(node.is_impure() for node in calls):
            has_side_effect(loop)  # as when it was traced
        return loop

    def _value(self, data: Any) -> Any:
        if data is None:
            return None
        if isinstance(data, list):
            return [self._value(item) for item in data]
        check(data["v"] in _DEVICES, f"there is no device {data['v']!r}")
        shape, stride = whole_list(data["s"]), whole_list(data["t"])
        storage = self._storages[whole(data["m"])]
        tensor = torch.empty(0, dtype=find_dtype(data["d"]), device="meta")
        tensor.set_(storage, whole(data["o"]), shape, stride)
        return FakeTensor(self._mode, tensor, torch.device(data["v"]))


def _find_target(name: Any) -> Callable[..., Any]:
    return operator.getitem if name == _GETITEM else find_operator(name)


def _read_tag(row: Row) -> Tag:
    phase, place, module, line, scope, notes, number = row
    texts = (module, line, scope, notes)
    check(all(isinstance(text, str) for text in texts), "a tag is malformed")
    block = None
    if place is not None:
        name, chip, stage = place
        check(isinstance(name, str) and {type(chip), type(stage)} == {int}, "odd block")
        block = Block(name, chip, stage)
    check(type(number) is int, "a tag has no number")
    notes_read = parse_notes(notes)
    return Tag(Phase(phase), block, module, line, scope, notes_read, number)


def _read_branch(row: dict[str, Any], nodes: list[Node]) -> TracedBranch:
    sides = (tuple(nodes[i] for i in whole_list(row[name])) for name in _BRANCH_FIELDS)
    return TracedBranch(nodes[whole(row["condition"])], *sides)
