"""Verify that a Program is well formed; the first rule that is broken raises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from popple.errors import ProgramError, suggest
from popple.program.numbering import MAIN, NumberedStep
from popple.program.parts import accesses_of, children_of, vectors_of
from popple.program.program import Program
from popple.program.steps import (
    Call,
    Control,
    Execute,
    GlobalExchange,
    Parallel,
    Repeat,
    RepeatWhile,
    Step,
    StreamCopy,
)
from popple.program.tiles import TileVector
from popple.program.variables import Category
from popple.program.vertices import ComputeSet


def verify(program: Program) -> None:
    """Raise ProgramError unless the program is well formed.

    Rules: every vector spans all tiles and holds no negative number; the variables and
    functions that steps name exist; constants are not written; no function calls
    itself; branches of Parallel share no chip, but for copies with the host; counts
    are not negative; flows join chips of the program; compute sets of one name are
    equal.
    """
    _Verifier(program).verify()


class _Verifier:
    """Goes through one program, looking at shared steps and vectors once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._compute_sets: dict[str, ComputeSet] = {}
        # By identity: the program keeps its vectors alive.
        self._checked_vectors: set[int] = set()
        self._checked_vertices: set[int] = set()

    def verify(self) -> None:
        program = self._program
        if program.num_chips < 1 or program.tiles_per_chip < 1:
            raise self._error("has no tiles")
        self._verify_variables()
        self._verify_calls()
        # A step that stands in several places of the tree is checked once, under its
        # last path.
        rows = {id(row.step): row for row in program.steps}.values()
        for row in rows:
            if not self._has_known_vertices(row.step):
                self._verify_vectors(row.path, vectors_of(row.step))
            self._verify_names(row)
        # The rules of single kinds of steps rely on names that resolve.
        for row in rows:
            self._verify_kind(row.path, row.step)

    def _has_known_vertices(self, step: Step) -> bool:
        """Whether it executes vertices that were seen, as equal layers share them."""
        if not isinstance(step, Execute):
            return False
        vertices = id(step.compute_set.vertices)
        is_known = vertices in self._checked_vertices
        self._checked_vertices.add(vertices)
        return is_known

    def _verify_variables(self) -> None:
        for name, variable in self._program.variables.items():
            if name != variable.name:
                raise self._error(f"files variable {variable.name!r} under {name!r}")
            self._verify_vectors(f"variable {name!r}", [variable.bytes_by_tile])

    def _verify_calls(self) -> None:
        # Numbering files both under their names.
        if MAIN in self._program.functions:
            what = f"has a function called {MAIN!r}, the name of its own steps"
            raise self._error(what)
        finished: set[str] = set()
        for name in self._program.functions:
            self._follow_calls(name, (), finished)

    def _follow_calls(
        self, name: str, callers: tuple[str, ...], finished: set[str]
    ) -> None:
        # Functions have one set of code and variables on the machine, without a call
        # stack: recursion could not run, and timing by callees before callers would not
        # end.
        if name in callers:
            circle = " -> ".join([*callers[callers.index(name) :], name])
            raise self._error(f"has functions that call themselves: {circle}")
        if name in finished:
            return
        for callee in sorted(set(_calls_in(self._program.functions[name]))):
            if callee in self._program.functions:
                self._follow_calls(callee, (*callers, name), finished)
        finished.add(name)

    def _verify_vectors(self, where: str, vectors: Iterable[TileVector]) -> None:
        for vector in vectors:
            if id(vector) in self._checked_vectors:
                continue
            self._checked_vectors.add(id(vector))
            size, wanted = len(vector), self._program.num_tiles
            if size != wanted:
                what = f"has a vector over {size} of {wanted} tiles"
                raise self._error(what, where)
            if any(value < 0 for _, value in vector.runs):
                raise self._error("has a negative number on a tile", where)

    def _verify_names(self, row: NumberedStep) -> None:
        variables, functions = self._program.variables, self._program.functions
        reads, writes = accesses_of(row.step)
        for name in (*reads, *writes):
            if name not in variables:
                what = f"names the variable {name!r}, which does not exist"
                raise self._error(what, row.path, suggest(name, variables))
        for name in writes:
            if variables[name].category is Category.CONSTANT:
                raise self._error(f"writes the constant {name!r}", row.path)
        if isinstance(row.step, Call) and row.step.function not in functions:
            what = f"calls {row.step.function!r}, which does not exist"
            raise self._error(what, row.path, suggest(row.step.function, functions))

    def _verify_kind(self, where: str, step: Step) -> None:
        if isinstance(step, Execute):
            self._verify_compute_set(where, step.compute_set)
        elif isinstance(step, Parallel):
            self._verify_branches(where, step)
        elif isinstance(step, GlobalExchange):
            self._verify_flows(where, step)
        elif isinstance(step, Repeat) and step.count < 0:
            raise self._error(f"repeats {step.count} times", where)
        elif isinstance(step, RepeatWhile) and step.expected_count < 0:
            raise self._error(f"expects {step.expected_count} rounds", where)

    def _verify_compute_set(self, where: str, compute_set: ComputeSet) -> None:
        # Code and vertex state are counted once for each name (`sim/footprint.py`), so
        # that two compute sets of one name would lose the memory of one. Identity is
        # asked first because equal sets mostly are the same object, and vectors are
        # slow to compare.
        known = self._compute_sets.setdefault(compute_set.name, compute_set)
        if known is not compute_set and known != compute_set:
            what = f"gives other vertices to compute set {known.name!r}"
            raise self._error(what, where, "Give every compute set its own name.")

    def _verify_branches(self, where: str, step: Parallel) -> None:
        # Compute and host traffic of a chip are booked apart: with I/O tiles both run
        # at the same time, on different tiles.
        taken: dict[tuple[int, bool], int] = {}
        for index, branch in enumerate(step.branches):
            is_traffic = self._is_host_traffic(branch)
            for chip in sorted(self._program.chip_finder.chips_of(branch)):
                other = taken.setdefault((chip, is_traffic), index)
                if other != index:
                    what = f"uses chip {chip} in branches {other} and {index}"
                    raise self._error(what, where, "Run them one after the other.")

    def _is_host_traffic(self, step: Step) -> bool:
        """Whether a step only copies between the host and tiles."""
        if isinstance(step, Call):
            return self._is_host_traffic(self._program.functions[step.function])
        if not isinstance(step, Control):
            return isinstance(step, StreamCopy)
        return all(self._is_host_traffic(child) for child in children_of(step))

    def _verify_flows(self, where: str, step: GlobalExchange) -> None:
        num_chips = self._program.num_chips
        for source, destination, num_bytes in step.flows:
            for chip in (source, destination):
                if not 0 <= chip < num_chips:
                    what = f"joins chip {chip}, which is not one of {num_chips}"
                    raise self._error(what, where)
            if num_bytes < 0:
                raise self._error(f"moves {num_bytes} bytes", where)
        if step.replicas < 1 or step.num_hops < 0:
            what = f"has {step.replicas} replicas and {step.num_hops} hops"
            raise self._error(what, where)

    def _error(self, what: str, where: str = "", remedy: str = "") -> ProgramError:
        place = f"program {self._program.name!r}"
        full = f"{place}, {where}" if where else place
        return ProgramError(f"{what}.", where=full, remedy=remedy)


def _calls_in(step: Step) -> Iterator[str]:
    if isinstance(step, Call):
        yield step.function
    for child in children_of(step):
        yield from _calls_in(child)
