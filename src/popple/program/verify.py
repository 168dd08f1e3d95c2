"""The rules every Program obeys; `verify` raises for the first one broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from popple.errors import ProgramError, suggest
from popple.program.chips import ChipFinder
from popple.program.numbering import MAIN, NumberedStep, number_steps
from popple.program.parts import accesses_of, children_of, vectors_of
from popple.program.program import Program
from popple.program.steps import (
    Call,
    Execute,
    GlobalExchange,
    Parallel,
    Repeat,
    RepeatWhile,
    Step,
)
from popple.program.tiles import TileVector
from popple.program.variables import Category
from popple.program.vertices import ComputeSet


def verify(program: Program) -> None:
    """Raise ProgramError unless the program is well formed.

    Rules: every vector spans all tiles and holds no negative number; variables,
    constants and functions that steps name exist; constants are not written; no
    function calls itself; branches of Parallel share no chip; counts are not
    negative; flows join chips of the program; compute sets of one name are equal.
    """
    if program.num_chips < 1 or program.tiles_per_chip < 1:
        raise _error(program, "has no tiles")
    _verify_variables(program)
    _verify_calls(program)
    compute_sets: dict[str, ComputeSet] = {}
    # A step may stand in many places of the tree; once is enough to look at it.
    rows = {id(row.step): row for row in number_steps(program)}.values()
    for row in rows:
        _verify_step(program, row, compute_sets)
    finder = ChipFinder(program)
    for row in rows:
        if isinstance(row.step, Parallel):
            _verify_branches(program, row.path, row.step, finder)


def _verify_variables(program: Program) -> None:
    for name, variable in program.variables.items():
        if name != variable.name:
            raise _error(program, f"files variable {variable.name!r} under {name!r}")
        _verify_vectors(program, f"variable {name!r}", [variable.bytes_by_tile])


def _verify_calls(program: Program) -> None:
    if MAIN in program.functions:
        what = f"has a function called {MAIN!r}, the name of its own steps"
        raise _error(program, what)
    finished: set[str] = set()
    for name in program.functions:
        _follow_calls(program, name, (), finished)


def _follow_calls(
    program: Program, name: str, callers: tuple[str, ...], finished: set[str]
) -> None:
    if name in callers:
        circle = " -> ".join([*callers[callers.index(name) :], name])
        raise _error(program, f"has functions that call themselves: {circle}")
    if name in finished:
        return
    for callee in sorted(set(_calls_in(program.functions[name]))):
        if callee in program.functions:
            _follow_calls(program, callee, (*callers, name), finished)
    finished.add(name)


def _calls_in(step: Step) -> Iterator[str]:
    if isinstance(step, Call):
        yield step.function
    for child in children_of(step):
        yield from _calls_in(child)


def _verify_step(
    program: Program, row: NumberedStep, compute_sets: dict[str, ComputeSet]
) -> None:
    step = row.step
    _verify_vectors(program, row.path, vectors_of(step))
    _verify_names(program, row)
    if isinstance(step, Execute):
        known = compute_sets.setdefault(step.compute_set.name, step.compute_set)
        if known is not step.compute_set and known != step.compute_set:
            what = f"compute set {known.name!r} exists twice with different vertices"
            raise _error(program, what, row.path)
    elif isinstance(step, Repeat) and step.count < 0:
        raise _error(program, f"repeats {step.count} times", row.path)
    elif isinstance(step, RepeatWhile) and step.expected_count < 0:
        raise _error(program, f"expects {step.expected_count} rounds", row.path)
    elif isinstance(step, GlobalExchange):
        _verify_flows(program, row.path, step)


def _verify_vectors(
    program: Program, where: str, vectors: Iterable[TileVector]
) -> None:
    for vector in vectors:
        if len(vector) != program.num_tiles:
            what = f"has a vector over {len(vector)} of {program.num_tiles} tiles"
            raise _error(program, what, where)
        if any(value < 0 for _, value in vector.runs):
            raise _error(program, "has a negative number on a tile", where)


def _verify_names(program: Program, row: NumberedStep) -> None:
    reads, writes = accesses_of(row.step)
    for name in (*reads, *writes):
        if name not in program.variables:
            what = f"names the variable {name!r}, which does not exist"
            advice = suggest(name, program.variables)
            raise _error(program, what, row.path, advice)
    for name in writes:
        if program.variables[name].category is Category.CONSTANT:
            raise _error(program, f"writes the constant {name!r}", row.path)
    if isinstance(row.step, Call) and row.step.function not in program.functions:
        what = f"calls {row.step.function!r}, which does not exist"
        advice = suggest(row.step.function, program.functions)
        raise _error(program, what, row.path, advice)


def _verify_branches(
    program: Program, where: str, step: Parallel, finder: ChipFinder
) -> None:
    taken: dict[int, int] = {}
    for index, branch in enumerate(step.branches):
        for chip in sorted(finder.chips_of(branch)):
            if chip in taken:
                what = f"uses chip {chip} in branches {taken[chip]} and {index}"
                raise _error(program, what, where, "Run them one after the other.")
            taken[chip] = index


def _verify_flows(program: Program, where: str, step: GlobalExchange) -> None:
    for source, destination, num_bytes in step.flows:
        for chip in (source, destination):
            if not 0 <= chip < program.num_chips:
                what = f"joins chip {chip}, which is not one of {program.num_chips}"
                raise _error(program, what, where)
        if num_bytes < 0:
            raise _error(program, f"moves {num_bytes} bytes", where)
    if step.replicas < 1 or step.num_hops < 0:
        what = f"has {step.replicas} replicas and {step.num_hops} hops"
        raise _error(program, what, where)


def _error(
    program: Program, what: str, where: str = "", remedy: str = ""
) -> ProgramError:
    place = f"program {program.name!r}"
    return ProgramError(
        f"{what}.", where=f"{place}, {where}" if where else place, remedy=remedy
    )
