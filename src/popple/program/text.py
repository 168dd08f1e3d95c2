"""The text form of a Program: printing and parsing, each the inverse of the other.

    program "demo" chips=1 tiles=1472 {
      variable "x" [1400x24, 72x0]
      variable "w" [1472x8] category="constant" always_live
      function "layer" {
        execute "fc/Convolve" reads=["x", "w"] writes=["y"] op="fc" {
          vertices "Dot" multi count=[1472x1] cycles=[1472x120] code=64 state=16
        }
      }
      main {
        repeat 3 {
          call "layer"
        }
      }
    }

`[1400x24, 72x0]` is 24 on 1400 tiles, then 0 on 72. What has its default value is left
out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

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
from popple.program.tiles import TileVector
from popple.program.variables import Category, Variable
from popple.program.vertices import Codelet, ComputeSet, Thread, VertexGroup


def render_program(program: Program) -> str:
    """The program as text; `parse_program` gives the same program back."""
    lines = [
        f"program {_quote(program.name)} chips={program.num_chips} "
        f"tiles={program.tiles_per_chip} {{"
    ]
    lines += [f"  {_variable_line(v)}" for v in program.variables.values()]
    for name, body in program.functions.items():
        lines += _indented(_block(f"function {_quote(name)}", _step_lines(body)))
    lines += _indented(_block("main", _step_lines(program.main)))
    return "\n".join([*lines, "}"]) + "\n"


def parse_program(text: str) -> Program:
    """The program that `render_program` printed; ProgramError names a bad line."""
    root = parse_statement(text)
    if root.word != "program":
        root.fail("is not a program")
    root.expect(1, ("chips", "tiles"))
    variables: dict[str, Variable] = {}
    functions: dict[str, Step] = {}
    main: Step | None = None
    for part in root.inner():
        if part.word == "variable":
            variable = _parse_variable(part)
            variables[variable.name] = variable
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
    num_chips, tiles_per_chip = root.integer("chips"), root.integer("tiles")
    return Program(
        root.text(0), num_chips, tiles_per_chip, variables, main, functions
    )


def _variable_line(variable: Variable) -> str:
    is_plain = variable.category is Category.VARIABLE
    return _line(
        "variable",
        _quote(variable.name),
        _vector(variable.bytes_by_tile),
        "" if is_plain else f"category={_quote(variable.category.value)}",
        "always_live" if variable.is_always_live else "",
        "interleaved" if variable.is_interleaved else "",
    )


def _parse_variable(part: Statement) -> Variable:
    part.expect(2, ["category"], ["always_live", "interleaved"])
    category = part.text("category") or Category.VARIABLE.value
    return Variable(
        part.text(0),
        part.vector(1),
        _choose(part, {c.value: c for c in Category}, category),
        "always_live" in part.flags,
        "interleaved" in part.flags,
    )


def _step_lines(step: Step) -> list[str]:
    if isinstance(step, Sequence):
        return _block(_head("sequence", step.name), _lines_of(step.steps))
    if isinstance(step, Parallel):
        return _block(_head("parallel", step.name), _lines_of(step.branches))
    if isinstance(step, Repeat):
        return _block(_head(f"repeat {step.count}", step.name), _step_lines(step.body))
    if isinstance(step, RepeatWhile | If | Switch):
        return _choice_lines(step)
    if isinstance(step, Execute):
        groups = map(_vertices_line, step.compute_set.vertices)
        head = _line("execute", _quote(step.compute_set.name), *_uses(step))
        return _block(head, groups)
    return [_leaf_line(step)]


def _choice_lines(step: RepeatWhile | If | Switch) -> list[str]:
    if isinstance(step, RepeatWhile):
        head = f"repeat_while {_quote(step.predicate)} expected={step.expected_count}"
        arms = [("condition", step.condition), ("body", step.body)]
    elif isinstance(step, If):
        head = f"if {_quote(step.predicate)}"
        arms = [("then", step.then), ("otherwise", step.otherwise)]
    else:
        head = f"switch {_quote(step.control)}"
        arms = [(f"case {number}", case) for number, case in step.cases]
        arms.append(("default", step.default))
    inner = [line for word, arm in arms for line in _block(word, _step_lines(arm))]
    return _block(_head(head, step.name), inner)


def _leaf_line(
    step: Exchange | GlobalExchange | StreamCopy | Sync | WriteUndef | Call,
) -> str:
    if isinstance(step, Sync):
        return _line("sync", _quote(step.kind.value), _setting("op", step.op))
    if isinstance(step, WriteUndef):
        return _line("write_undef", _quote(step.variable), _setting("op", step.op))
    if isinstance(step, Call):
        return _line(
            "call",
            _quote(step.function),
            _setting("label", step.label),
            "" if step.stage == -1 else f"stage={step.stage}",
            "" if step.micro_batch == -1 else f"micro_batch={step.micro_batch}",
        )
    return _line(*_transfer(step), *_uses(step))


def _transfer(step: Exchange | GlobalExchange | StreamCopy) -> Iterator[str]:
    if isinstance(step, StreamCopy):
        yield f"stream_copy {_quote(step.name)}"
        yield f"direction={_quote(step.direction.value)}"
        yield f"bytes={_vector(step.bytes_by_tile)}"
        yield "remote" if step.is_remote_buffer else ""
        return
    word = "exchange" if isinstance(step, Exchange) else "global_exchange"
    yield f"{word} {_quote(step.name)}"
    yield f"sent={_vector(step.sent_by_tile)}"
    yield f"received={_vector(step.received_by_tile)}"
    if isinstance(step, GlobalExchange):
        flows = ", ".join(f"{a}->{b}:{num_bytes}" for a, b, num_bytes in step.flows)
        yield f"flows=[{flows}]"
        yield f"hops={step.num_hops}"
        yield f"replicas={step.replicas}"
        return
    if step.messages_by_tile is not None:
        yield f"messages={_vector(step.messages_by_tile)}"
    yield "shared" if step.is_shared else ""


def _vertices_line(group: VertexGroup) -> str:
    codelet, flops = group.codelet, group.flops_by_tile
    return _line(
        "vertices",
        _quote(codelet.name),
        codelet.thread.value,
        f"count={_vector(group.count_by_tile)}",
        f"cycles={_vector(group.cycles_by_tile)}",
        "" if flops is None else f"flops={_vector(flops)}",
        f"edges={group.num_edges}",
        f"code={codelet.code_bytes}",
        f"state={codelet.state_bytes}",
        _setting("source", codelet.source),
    )


def _uses(step: Execute | Exchange | GlobalExchange | StreamCopy) -> Iterator[str]:
    for key, names in (("reads", step.reads), ("writes", step.writes)):
        if names:
            yield f"{key}=[{', '.join(map(_quote, names))}]"
    yield _setting("op", step.op)


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
    part.expect(1, ["name"])
    return Repeat(part.integer(0), _only_step(part), part.text("name"))


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
    settings = ("count", "cycles", "flops", "edges", "code", "state", "source")
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
    part.expect(1, ["sent", "received", "flows", "hops", "replicas", *_USES])
    return GlobalExchange(
        part.text(0),
        tuple((row[0], row[1], row[2]) for row in part.tuples("flows", 3)),
        part.vector("sent"),
        part.vector("received"),
        part.integer("hops", 1),
        part.integer("replicas", 1),
        *_parse_uses(part),
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
