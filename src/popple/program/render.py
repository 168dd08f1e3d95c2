"""A Program as text, which `parse` turns into the same Program again.

    program "demo" chips=1 tiles=1472 {
      variable "x" [1400x24, 72x0]
      variable "w" [1472x8] category="constant" always_live
      outlined "fc2" "fc"
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
from collections.abc import Iterable, Iterator

from popple.program.program import Program
from popple.program.steps import (
    Call,
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
    WriteUndef,
)
from popple.program.tiles import TileVector
from popple.program.variables import Category, Variable
from popple.program.vertices import VertexGroup


def render_program(program: Program) -> str:
    """The program as text; `parse_program` gives the same program back."""
    lines = [
        f"program {_quote(program.name)} chips={program.num_chips} "
        f"tiles={program.tiles_per_chip} "
        f"{'' if program.has_vertex_code else 'without_vertex_code '}{{"
    ]
    lines += [f"  {_variable_line(v)}" for v in program.variables.values()]
    for pair in program.outlined.items():
        lines.append(f"  {_line('outlined', *map(_quote, pair))}")
    for name, body in program.functions.items():
        lines += _indented(_block(f"function {_quote(name)}", _step_lines(body)))
    lines += _indented(_block("main", _step_lines(program.main)))
    return "\n".join([*lines, "}"]) + "\n"


def _variable_line(variable: Variable) -> str:
    is_plain = variable.category is Category.VARIABLE
    return _line(
        "variable",
        _quote(variable.name),
        _vector(variable.bytes_by_tile),
        "" if is_plain else f"category={_quote(variable.category.value)}",
        "always_live" if variable.is_always_live else "",
        "interleaved" if variable.is_interleaved else "",
        f"operand={variable.operand}" if variable.operand else "",
        "gathered" if variable.is_gathered else "",
    )


def _step_lines(step: Step) -> list[str]:
    if isinstance(step, Sequence):
        return _block(_head("sequence", step.name), _lines_of(step.steps))
    if isinstance(step, Parallel):
        return _block(_head("parallel", step.name), _lines_of(step.branches))
    if isinstance(step, Repeat):
        return _block(_repeat_head(step), _step_lines(step.body))
    if isinstance(step, RepeatWhile | If | Switch):
        return _choice_lines(step)
    if isinstance(step, Execute):
        groups = map(_vertices_line, step.compute_set.vertices)
        head = _line("execute", _quote(step.compute_set.name), *_uses(step))
        return _block(head, groups)
    return [_leaf_line(step)]


def _repeat_head(step: Repeat) -> str:
    numbers = ("micro_batches", "first_micro_batch")
    said = [f"{key}={value}" for key in numbers if (value := getattr(step, key))]
    return _line(_head(f"repeat {step.count}", step.name), *said)


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
        yield "between_racks" if step.is_between_racks else ""
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
        f"lists={group.list_bytes}" if group.list_bytes else "",
        _setting("source", codelet.source),
    )


def _uses(step: Execute | Exchange | GlobalExchange | StreamCopy) -> Iterator[str]:
    for key, names in (("reads", step.reads), ("writes", step.writes)):
        if names:
            yield f"{key}=[{', '.join(map(_quote, names))}]"
    yield _setting("op", step.op)


def _lines_of(steps: Iterable[Step]) -> list[str]:
    return [line for step in steps for line in _step_lines(step)]


def _block(head: str, inner: Iterable[str]) -> list[str]:
    return [f"{head} {{", *_indented(inner), "}"]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _head(words: str, name: str) -> str:
    return _line(words, _setting("name", name))


def _line(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _setting(key: str, text: str) -> str:
    return f"{key}={_quote(text)}" if text else ""


def _vector(vector: TileVector) -> str:
    return f"[{', '.join(f'{count}x{value}' for count, value in vector.runs)}]"


def _quote(text: str) -> str:
    # Names come from users and may hold quotes or line breaks; JSON escapes both, and
    # the parser reads a statement line by line.
    return json.dumps(text)
