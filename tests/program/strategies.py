"""Random programs for properties: what a program may contain, small."""

from __future__ import annotations

import zlib
from collections.abc import Sequence as ListOf

from hypothesis import strategies as st

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
    SyncKind,
    Thread,
    TileVector,
    Variable,
    VertexGroup,
    WriteUndef,
)

NAMES = ("a", "b", "c")
# Drawn from short lists: a program has hundreds of these, and most are alike.
TEXTS = st.sampled_from(["", "name", 'a "b" \\ c', "\n\u2028é{}"])
COUNTS = st.integers(0, 3)
SHAPES = ((0, 0, 0, 0), (0, 0, 0, 0), (8, 8, 8, 8), (0, 4, 0, 0), (1, 600, 0, 20))


def vectors(num_tiles: int) -> st.SearchStrategy[TileVector]:
    """One of a few vectors over so many tiles, zeros being likely."""
    return st.sampled_from(
        [TileVector.of((1, value) for value in shape[:num_tiles]) for shape in SHAPES]
    )


def codelets() -> st.SearchStrategy[Codelet]:
    return st.builds(Codelet, TEXTS, st.sampled_from(Thread), COUNTS, COUNTS, TEXTS)


def vertex_groups(num_tiles: int) -> st.SearchStrategy[VertexGroup]:
    vector = vectors(num_tiles)
    flops = st.one_of(st.none(), vector)
    return st.builds(VertexGroup, codelets(), vector, vector, flops, COUNTS, COUNTS)


@st.composite
def executes(draw: st.DrawFn, num_tiles: int) -> Execute:
    """A compute phase; the name follows from the vertices, so equal names agree."""
    groups = tuple(draw(st.lists(vertex_groups(num_tiles), max_size=2)))
    name = f"cs{zlib.crc32(repr(groups).encode())}"
    reads, writes = draw(name_lists()), draw(name_lists())
    return Execute(ComputeSet(name, groups), reads, writes, draw(TEXTS))


def name_lists() -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple)


def leaves(num_tiles: int, num_chips: int) -> st.SearchStrategy[Step]:
    """Any leaf step."""
    vector, names = vectors(num_tiles), name_lists()
    chip = st.integers(0, num_chips - 1)
    flows = st.lists(st.tuples(chip, chip, COUNTS), max_size=2).map(tuple)
    messages = st.one_of(st.none(), vectors(num_tiles))
    uses = (names, names, TEXTS)
    return st.one_of(
        executes(num_tiles),
        st.builds(Exchange, TEXTS, vector, vector, messages, st.booleans(), *uses),
        st.builds(
            GlobalExchange, TEXTS, flows, vector, vector, COUNTS, st.just(1), *uses
        ),
        st.builds(
            StreamCopy, TEXTS, st.sampled_from(Direction), vector, st.booleans(), *uses
        ),
        st.builds(Sync, st.sampled_from(SyncKind), TEXTS),
        st.builds(WriteUndef, st.sampled_from(NAMES), TEXTS),
    )


def accesses() -> st.SearchStrategy[Step]:
    """Leaf steps that only use variables, cheap to draw."""
    used = st.builds(
        lambda reads, writes: Exchange(
            "x", TileVector.zeros(2), TileVector.zeros(2), reads=reads, writes=writes
        ),
        name_lists(),
        name_lists(),
    )
    return st.one_of(used, used, st.builds(WriteUndef, st.sampled_from(NAMES)))


def steps(
    leaf: st.SearchStrategy[Step], functions: ListOf[str] = (), max_leaves: int = 8
) -> st.SearchStrategy[Step]:
    """Steps nested in any way; calls go to the given functions."""
    name = st.sampled_from(NAMES)
    if functions:
        called = st.sampled_from(functions)
        call = st.builds(Call, called, TEXTS, st.integers(-1, 2), st.integers(-1, 2))
        leaf = st.one_of(leaf, leaf, call)

    def extend(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
        several = st.lists(inner, max_size=3).map(tuple)
        case = st.tuples(st.integers(-5, 5), inner)
        return st.one_of(
            st.builds(Sequence, several, TEXTS),
            st.builds(Repeat, COUNTS, inner, TEXTS),
            st.builds(RepeatWhile, inner, name, inner, COUNTS, TEXTS),
            st.builds(If, name, inner, inner, TEXTS),
            st.builds(
                Switch, name, st.lists(case, max_size=2).map(tuple), inner, TEXTS
            ),
        )

    return st.recursive(leaf, extend, max_leaves=max_leaves)


@st.composite
def programs(draw: st.DrawFn, max_leaves: int = 8) -> Program:
    """A valid program on two chips of two tiles, with two functions."""
    leaf = leaves(num_tiles=4, num_chips=2)
    functions = {"f": draw(steps(leaf, max_leaves=3))}
    functions["g"] = draw(steps(leaf, ["f"], max_leaves=3))
    main = draw(steps(leaf, ["f", "g"], max_leaves))
    return Program(
        draw(TEXTS),
        2,
        2,
        draw(variables(4)),
        _with_branches(main),
        functions,
        has_vertex_code=draw(st.booleans()),
    )


def _with_branches(main: Step) -> Step:
    left = Exchange(
        "l", TileVector(((1, 8), (3, 0))), TileVector(((1, 0), (1, 8), (2, 0)))
    )
    right = StreamCopy("r", Direction.TO_HOST, TileVector(((3, 0), (1, 8))))
    return Sequence((main, Parallel((left, Sequence((right, right))))))


@st.composite
def variables(draw: st.DrawFn, num_tiles: int) -> dict[str, Variable]:
    """The variables that steps name; none is constant, since steps write all."""
    categories = [each for each in Category if each is not Category.CONSTANT]
    flag = st.booleans()
    return {
        name: Variable(
            name,
            draw(vectors(num_tiles)),
            draw(st.sampled_from(categories)),
            draw(flag),
            draw(flag),
        )
        for name in NAMES
    }
