from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from popple.errors import ProgramError
from popple.program import (
    Call,
    Category,
    Codelet,
    ComputeSet,
    Direction,
    Exchange,
    Execute,
    GlobalExchange,
    If,
    Parallel,
    Program,
    Repeat,
    RepeatWhile,
    Sequence,
    Step,
    StreamCopy,
    Switch,
    Sync,
    TileVector,
    Variable,
    VertexGroup,
    WriteUndef,
    verify,
)
from tests.program.strategies import programs

ZEROS = TileVector.zeros(4)
ONES = TileVector.constant(4, 1)
CHIP_0 = TileVector(((2, 8), (2, 0)))
CHIP_1 = TileVector(((2, 0), (2, 8)))
VARIABLES = {
    "x": Variable("x", ONES),
    "pi": Variable("pi", ONES, Category.CONSTANT),
}


def program_of(body: Step, **functions: Step) -> Program:
    return Program("p", 2, 2, VARIABLES, body, functions)


def copy_to_host(vector: TileVector) -> StreamCopy:
    return StreamCopy("out", Direction.TO_HOST, vector)


def vertices_of(count: TileVector) -> tuple[VertexGroup, ...]:
    return (VertexGroup(Codelet("c"), count, count),)


@settings(max_examples=40)
@given(programs())
def test_well_formed_programs_pass(program: Program) -> None:
    verify(program)


SHORT = TileVector.zeros(3)
BROKEN: list[tuple[Program, str]] = [
    (replace(program_of(Sync()), tiles_per_chip=0), "has no tiles"),
    (
        replace(program_of(Sync()), variables={"y": Variable("x", ONES)}),
        "files variable 'x' under 'y'",
    ),
    (
        replace(program_of(Sync()), variables={"x": Variable("x", SHORT)}),
        "variable 'x': has a vector over 3 of 4 tiles",
    ),
    (
        program_of(Execute(ComputeSet("cs", vertices_of(SHORT)))),
        "main: has a vector over 3 of 4 tiles",
    ),
    (program_of(Exchange("e", SHORT, ZEROS)), "over 3 of 4 tiles"),
    (program_of(Exchange("e", ZEROS, ZEROS, SHORT)), "over 3 of 4 tiles"),
    (program_of(GlobalExchange("g", (), ZEROS, SHORT)), "over 3 of 4 tiles"),
    (program_of(copy_to_host(SHORT)), "over 3 of 4 tiles"),
    (program_of(copy_to_host(TileVector.constant(4, -1))), "a negative number"),
    (program_of(Exchange("e", ZEROS, ZEROS, reads=("y",))), "names the variable 'y'"),
    (program_of(WriteUndef("y")), "names the variable 'y'"),
    (program_of(If("y", Sync(), Sync())), "names the variable 'y'"),
    (program_of(RepeatWhile(Sync(), "y", Sync())), "names the variable 'y'"),
    (program_of(Switch("y", (), Sync())), "names the variable 'y'"),
    (
        program_of(Exchange("e", ZEROS, ZEROS, writes=("pi",))),
        "main: writes the constant 'pi'",
    ),
    (program_of(WriteUndef("pi")), "writes the constant 'pi'"),
    (program_of(Call("f"), g=Sync()), "calls 'f', which does not exist"),
    (
        program_of(Call("f"), f=Call("g"), g=Sequence((Call("f"),))),
        "call themselves: f -> g -> f",
    ),
    (program_of(Sync(), main=Sync()), "has a function called 'main'"),
    (
        program_of(Parallel((copy_to_host(CHIP_0), copy_to_host(ONES)))),
        "uses chip 0 in branches 0 and 1",
    ),
    (
        program_of(Parallel((Call("f"), Call("f"))), f=copy_to_host(CHIP_1)),
        "uses chip 1 in branches 0 and 1",
    ),
    (program_of(Repeat(-1, Sync())), "repeats -1 times"),
    (program_of(RepeatWhile(Sync(), "x", Sync(), -2)), "expects -2 rounds"),
    (program_of(GlobalExchange("g", ((0, 2, 4),), ZEROS, ZEROS)), "joins chip 2"),
    (program_of(GlobalExchange("g", ((0, 1, -4),), ZEROS, ZEROS)), "moves -4 bytes"),
    (program_of(GlobalExchange("g", (), ZEROS, ZEROS, replicas=0)), "has 0 replicas"),
    (
        program_of(
            Sequence(
                (
                    Execute(ComputeSet("cs", vertices_of(ONES))),
                    Execute(ComputeSet("cs", vertices_of(ZEROS))),
                )
            )
        ),
        "gives other vertices to compute set 'cs'",
    ),
]


@pytest.mark.parametrize(("program", "complaint"), BROKEN)
def test_each_rule_is_checked(program: Program, complaint: str) -> None:
    with pytest.raises(ProgramError) as caught:
        verify(program)
    assert complaint in str(caught.value)
    assert caught.value.where.startswith("program 'p'")


def test_near_names_are_suggested() -> None:
    near = replace(program_of(WriteUndef("weigths")))
    named = replace(near, variables={"weights": Variable("weights", ONES)})
    with pytest.raises(ProgramError, match="Did you mean 'weights'"):
        verify(named)


def test_branches_on_different_chips_pass() -> None:
    verify(program_of(Parallel((copy_to_host(CHIP_0), copy_to_host(CHIP_1)))))


def test_a_compute_set_may_be_executed_twice() -> None:
    execute = Execute(ComputeSet("cs", vertices_of(ONES)))
    verify(program_of(Sequence((execute, replace(execute, op="again")))))
