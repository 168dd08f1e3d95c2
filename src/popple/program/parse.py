"""Parse the text form of a Program, as `render_program` prints it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from popple.errors import suggest
from popple.program.program import Program
from popple.program.steps import (
    Call,
    Direction,
    Exchange,
    Execute,
    GlobalExchange,
    If,
    Parallel,
    Repeat,
    RepeatWhile,
    Sequence,
    Step,
    StreamCopy,
    Switch,
    Sync,
    SyncKind,
    WriteUndef,
)
from popple.program.syntax import Statement, parse_statement
from popple.program.variables import Category, Variable
from popple.program.vertices import Codelet, ComputeSet, Thread, VertexGroup

_T = TypeVar("_T")
_USES = ("reads", "writes", "op")


def parse_program(text: str) -> Program:
    """The program that `render_program` printed; ProgramError names a bad line."""
    root = parse_statement(text)
    if root.word != "program":
        root.fail("is not a program")
    root.expect(1, ("chips", "tiles"), ["without_vertex_code"])
    variables: dict[str, Variable] = {}
    functions: dict[str, Step] = {}
    outlined: dict[str, str] = {}
    main: Step | None = None
    for part in root.inner():
        if part.word == "variable":
            variable = _parse_variable(part)
            variables[variable.name] = variable
        elif part.word == "outlined":
            part.expect(2)
            outlined[part.text(0)] = part.text(1)
        elif part.word == "function":
            part.expect(1)
            functions[part.text(0)] = _only_step(part)
        elif part.word == "main":
            part.expect()
            main = _only_step(part)
        else:
            part.fail("does not belong here", "Steps stand inside main or a function.")
    if main is None:
        root.fail("has no main")
    return Program(
        root.text(0),
        root.integer("chips"),
        root.integer("tiles"),
        variables,
        main,
        functions,
        outlined,
        "without_vertex_code" not in root.flags,
    )


_PLACES = ["always_live", "interleaved", "gathered"]


def _parse_variable(part: Statement) -> Variable:
    part.expect(2, ["category", "operand"], _PLACES)
    category = part.text("category") or Category.VARIABLE.value
    return Variable(
        part.text(0),
        part.vector(1),
        _choose(part, {c.value: c for c in Category}, category),
        "always_live" in part.flags,
        "interleaved" in part.flags,
        part.integer("operand", 0),
        "gathered" in part.flags,
    )


def _parse_step(part: Statement) -> Step:
    if (parse := _PARSERS.get(part.word)) is None:
        part.fail("is not a step", suggest(part.word, _PARSERS))
    return parse(part)


def _only_step(part: Statement) -> Step:
    inner = part.inner()
    if len(inner) != 1:
        part.fail(f"holds one step, got {len(inner)}")
    return _parse_step(inner[0])


def _arms(part: Statement, *words: str) -> list[Step]:
    given = tuple(arm.word for arm in part.inner())
    if given != words:
        part.fail(f"holds {' and '.join(words)}, got {', '.join(given)}")
    return [_only_step(arm) for arm in part.inner()]


def _parse_sequence(part: Statement) -> Sequence:
    part.expect(0, ["name"])
    return Sequence(tuple(map(_parse_step, part.inner())), part.text("name"))


def _parse_parallel(part: Statement) -> Parallel:
    part.expect(0, ["name"])
    return Parallel(tuple(map(_parse_step, part.inner())), part.text("name"))


def _parse_repeat(part: Statement) -> Repeat:
    part.expect(1, ["name", "micro_batches", "first_micro_batch"])
    each = part.integer("micro_batches", 0)
    first = part.integer("first_micro_batch", 0)
    return Repeat(part.integer(0), _only_step(part), part.text("name"), each, first)


def _parse_repeat_while(part: Statement) -> RepeatWhile:
    part.expect(1, ["name", "expected"])
    condition, body = _arms(part, "condition", "body")
    expected, name = part.integer("expected", 1), part.text("name")
    return RepeatWhile(condition, part.text(0), body, expected, name)


def _parse_if(part: Statement) -> If:
    part.expect(1, ["name"])
    then, otherwise = _arms(part, "then", "otherwise")
    return If(part.text(0), then, otherwise, part.text("name"))


def _parse_switch(part: Statement) -> Switch:
    part.expect(1, ["name"])
    # An empty block is refused by the same words: the switch itself is not a `default`.
    *cases, default = part.inner() or [part]
    if default.word != "default" or any(case.word != "case" for case in cases):
        part.fail("holds cases, then default")
    for case in cases:
        case.expect(1)
    numbered = tuple((case.integer(0), _only_step(case)) for case in cases)
    return Switch(part.text(0), numbered, _only_step(default), part.text("name"))


def _parse_call(part: Statement) -> Call:
    part.expect(1, ["label", "stage", "micro_batch"])
    stage, micro_batch = part.integer("stage", -1), part.integer("micro_batch", -1)
    return Call(part.text(0), part.text("label"), stage, micro_batch)


def _parse_execute(part: Statement) -> Execute:
    part.expect(1, _USES)
    groups = tuple(map(_parse_vertices, part.inner()))
    return Execute(ComputeSet(part.text(0), groups), *_parse_uses(part))


def _parse_vertices(part: Statement) -> VertexGroup:
    if part.word != "vertices":
        part.fail("does not belong here", "Compute sets hold vertices.")
    threads = {thread.value: thread for thread in Thread}
    settings = ("count", "cycles", "flops", "edges", "code", "state", "lists", "source")
    part.expect(1, settings, threads)
    codelet = Codelet(
        part.text(0),
        _choose(part, threads, next(iter(part.flags), Thread.MULTI.value)),
        part.integer("code"),
        part.integer("state"),
        part.text("source"),
    )
    return VertexGroup(
        codelet,
        part.vector("count"),
        part.vector("cycles"),
        part.vector("flops") if "flops" in part.settings else None,
        part.integer("edges", 1),
        part.integer("lists"),
    )


def _parse_exchange(part: Statement) -> Exchange:
    part.expect(1, ["sent", "received", "messages", *_USES], ["shared"])
    return Exchange(
        part.text(0),
        part.vector("sent"),
        part.vector("received"),
        part.vector("messages") if "messages" in part.settings else None,
        "shared" in part.flags,
        *_parse_uses(part),
    )


def _parse_global_exchange(part: Statement) -> GlobalExchange:
    part.expect(
        1, ["sent", "received", "flows", "hops", "replicas", *_USES], ["between_racks"]
    )
    return GlobalExchange(
        part.text(0),
        tuple((row[0], row[1], row[2]) for row in part.tuples("flows", 3)),
        part.vector("sent"),
        part.vector("received"),
        part.integer("hops", 1),
        part.integer("replicas", 1),
        *_parse_uses(part),
        is_between_racks="between_racks" in part.flags,
    )


def _parse_stream_copy(part: Statement) -> StreamCopy:
    part.expect(1, ["direction", "bytes", *_USES], ["remote"])
    directions = {direction.value: direction for direction in Direction}
    return StreamCopy(
        part.text(0),
        _choose(part, directions, part.text("direction")),
        part.vector("bytes"),
        "remote" in part.flags,
        *_parse_uses(part),
    )


def _parse_sync(part: Statement) -> Sync:
    part.expect(1, ["op"])
    kinds = {kind.value: kind for kind in SyncKind}
    return Sync(_choose(part, kinds, part.text(0)), part.text("op"))


def _parse_write_undef(part: Statement) -> WriteUndef:
    part.expect(1, ["op"])
    return WriteUndef(part.text(0), part.text("op"))


def _parse_uses(part: Statement) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    return part.texts("reads"), part.texts("writes"), part.text("op")


def _choose(part: Statement, known: Mapping[str, _T], word: str) -> _T:
    if word not in known:
        part.fail(f"does not know {word!r}", suggest(word, known))
    return known[word]


_PARSERS: Mapping[str, Callable[[Statement], Step]] = {
    "sequence": _parse_sequence,
    "parallel": _parse_parallel,
    "repeat": _parse_repeat,
    "repeat_while": _parse_repeat_while,
    "if": _parse_if,
    "switch": _parse_switch,
    "call": _parse_call,
    "execute": _parse_execute,
    "exchange": _parse_exchange,
    "global_exchange": _parse_global_exchange,
    "stream_copy": _parse_stream_copy,
    "sync": _parse_sync,
    "write_undef": _parse_write_undef,
}
