"""Text form of a Graph: render and parse, each the inverse of the other.

    graph "train" strategy=single num_chips=1 ... {
      input %x : f32[16,64]
      weight %fc.weight : f32[64,10]
      matmul %fc : f32[16,10] = (%x, %fc.weight) forward chip=0 stage=0 at "m.py:3"
      output %fc
    }
    function "layer" {
      argument %x : f32[16,64]
      ...
    }

Strings are JSON strings; attributes stand in braces as JSON, and so do notes behind the
word `notes`, both without what is at its default; `shares %y` after a type names the
value whose memory is shared.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, TypeAlias, overload

from popple.errors import GraphError
from popple.graph.graph import Execution, Graph, Op, Phase, Role, Strategy, Value
from popple.graph.notes import NO_NOTES, parse_notes, render_notes
from popple.graph.ops import get_op
from popple.graph.types import DType, TensorType

_Line: TypeAlias = tuple[int, str]
"""Number of a line and the line"""

_TYPE = r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]"
_RESULT = re.compile(rf"%(?P<name>\S+) : {_TYPE}(?: shares %(?P<storage>\S+))?$")
_HEAD = re.compile(
    r'(?P<word>graph|function) (?P<name>"(?:[^"\\]|\\.)*")(?P<execution>.*) \{$'
)
_GIVEN = re.compile(r"(?P<role>input|weight|state|constant|argument) (?P<rest>%.*)$")
# Names may hold anything but spaces, so results are found by ` : ` and ` ; `.
_OP = re.compile(
    r"(?P<kind>\w+) %(?P<name>\S+)(?: : (?P<results>.*?))? = "
    r"\((?P<inputs>[^)]*)\)(?: (?P<attrs>\{.*?\}))?(?: notes (?P<notes>\{.*?\}))? "
    r"(?P<phase>forward|backward|update) chip=(?P<chip>\d+) stage=(?P<stage>\d+)"
    r'(?: in (?P<module>"(?:[^"\\]|\\.)*"))?(?: at (?P<line>"(?:[^"\\]|\\.)*"))?$'
)


def render_graph(graph: Graph) -> str:
    """The graph as text, its functions after it; `parse_graph` gives it back."""
    parts = [_render_one("graph", graph)]
    parts += [_render_one("function", body) for body in graph.functions.values()]
    return "".join(parts)


def _render_one(word: str, graph: Graph) -> str:
    lines = [f"{word} {json.dumps(graph.name)}{_render_execution(graph.execution)} {{"]
    for value in graph.values.values():
        # Activations are declared where their op makes them.
        if value.role is not Role.ACTIVATION:
            lines.append(f"  {value.role.value} {_render_value(value)}")
    lines += [f"  {_render_op(graph, op)}" for op in graph.ops]
    lines += [f"  output %{name}" for name in graph.outputs]
    return "\n".join([*lines, "}"]) + "\n"


def parse_graph(text: str) -> Graph:
    """The graph that `render_graph` printed; GraphError names a bad line."""
    lines = _numbered_lines(text)
    word, main = _parse_one(lines)
    if word != "graph":
        raise GraphError("the main graph comes first, functions after it.")
    functions: dict[str, Graph] = {}
    while (found := _parse_one(lines, is_optional=True)) is not None:
        word, body = found
        if word != "function" or body.name in functions:
            what = f"{word} {body.name!r} is not a function of a name of its own."
            raise GraphError(what)
        functions[body.name] = body
    return replace(main, functions=functions)


@overload
def _parse_one(lines: Iterator[_Line]) -> tuple[str, Graph]: ...
@overload
def _parse_one(
    lines: Iterator[_Line], is_optional: bool
) -> tuple[str, Graph] | None: ...
def _parse_one(
    lines: Iterator[_Line], is_optional: bool = False
) -> tuple[str, Graph] | None:
    """The next graph or function, and the word it begins with."""
    number, first = next(lines, (1, ""))
    if not first and is_optional:
        return None
    head = _match(_HEAD, first, number, 'graph "name" {')
    begin = number
    values: dict[str, Value] = {}
    ops: list[Op] = []
    outputs: list[str] = []
    for number, line in lines:
        if line == "}":
            break
        if line.startswith("output %"):
            outputs.append(line.removeprefix("output %"))
        elif given := _GIVEN.match(line):
            value = _parse_value(given["rest"], Role(given["role"]), number)
            _declare(values, value, number)
        else:
            op, results = _parse_op(line, number)
            ops.append(op)
            for value in results:
                _declare(values, value, number)
    else:
        raise GraphError("the graph has no closing brace.", where=f"line {number}")
    execution = _parse_execution(head["execution"], begin)
    name = json.loads(head["name"])
    graph = Graph(name, values, tuple(ops), tuple(outputs), execution)
    return head["word"], graph


def _declare(values: dict[str, Value], value: Value, number: int) -> None:
    if value.name in values:
        what = f"%{value.name} is declared a second time."
        raise GraphError(what, where=f"line {number}")
    values[value.name] = value


def _render_execution(execution: Execution) -> str:
    default = Execution()
    parts: list[str] = []
    for item in fields(Execution):
        value = getattr(execution, item.name)
        if value != getattr(default, item.name):
            text = value.value if isinstance(value, enum.Enum) else int(value)
            parts.append(f" {item.name}={text}")
    return "".join(parts)


def _parse_execution(text: str, number: int) -> Execution:
    known = {item.name for item in fields(Execution)}
    settings: dict[str, Any] = {}
    for part in text.split():
        key, _, value = part.partition("=")
        if key not in known:
            raise GraphError(f"unknown setting {key!r}.", where=f"line {number}")
        settings[key] = int(value) if value.isdigit() else Strategy(value)
    if "recompute" in settings:
        settings["recompute"] = bool(settings["recompute"])
    return Execution(**settings)


def _render_value(value: Value) -> str:
    shares = f" shares %{value.storage}" if value.storage else ""
    return f"%{value.name} : {value.type}{shares}"


def _parse_value(text: str, role: Role, number: int) -> Value:
    found = _match(_RESULT, text, number, "%name : f32[2,3]")
    try:
        dtype = DType(found["dtype"])
    except ValueError:
        what = f"there is no element type {found['dtype']!r}."
        raise GraphError(what, where=f"line {number}") from None
    shape = tuple(int(dim) for dim in found["shape"].split(",") if dim)
    return Value(found["name"], TensorType(dtype, shape), role, found["storage"] or "")


def _render_op(graph: Graph, op: Op) -> str:
    results = " ; ".join(_render_value(graph.values[name]) for name in op.outputs)
    sources = ", ".join(f"%{name}" for name in op.inputs)
    said = get_op(op.kind).schema.said(op.attrs)
    attrs = f" {json.dumps(said)}" if said else ""
    notes = "" if op.notes == NO_NOTES else f" notes {render_notes(op.notes)}"
    module = f" in {json.dumps(op.module)}" if op.module else ""
    line = f" at {json.dumps(op.line)}" if op.line else ""
    place = f"{op.phase.value} chip={op.chip} stage={op.stage}{module}{line}"
    typed = f" : {results}" if results else ""
    return f"{op.kind} %{op.name}{typed} = ({sources}){attrs}{notes} {place}"


def _parse_op(line: str, number: int) -> tuple[Op, list[Value]]:
    found = _match(_OP, line, number, "kind %name : %result : f32[2] = (%x) forward")
    parts = (found["results"] or "").split(" ; ")
    results = [_parse_value(p, Role.ACTIVATION, number) for p in parts if p]
    try:
        return _make_op(found, results), results
    except GraphError as error:  # the line of the text, not the user's, is to blame
        place = f"line {number}"
        raise GraphError(error.what, where=place, remedy=error.remedy) from error


def _make_op(found: re.Match[str], results: list[Value]) -> Op:
    given = json.loads(found["attrs"] or "{}")
    return Op(
        name=found["name"],
        kind=found["kind"],
        inputs=tuple(n.removeprefix("%") for n in found["inputs"].split(", ") if n),
        outputs=tuple(v.name for v in results),
        attrs=get_op(found["kind"]).schema.from_json(given),
        phase=Phase(found["phase"]),
        chip=int(found["chip"]),
        stage=int(found["stage"]),
        module=json.loads(found["module"] or '""'),
        line=json.loads(found["line"] or '""'),
        notes=parse_notes(found["notes"] or ""),
    )


def _numbered_lines(text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.splitlines(), start=1):
        if stripped := line.strip():
            yield number, stripped


def _match(
    pattern: re.Pattern[str], line: str, number: int, form: str
) -> re.Match[str]:
    found = pattern.match(line)
    if found is None:
        what = f"cannot read {line!r}; expected the form `{form}`."
        raise GraphError(what, where=f"line {number}")
    return found
