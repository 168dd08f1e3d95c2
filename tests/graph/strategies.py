"""Random graphs that obey the rules, small."""

from __future__ import annotations

from hypothesis import strategies as st

from popple.graph import (
    NO_NOTES,
    DType,
    Execution,
    Graph,
    LinearPass,
    LinearProduct,
    MultiConv,
    Notes,
    Op,
    Phase,
    Role,
    SerialSplit,
    SplitDimension,
    Strategy,
    TensorType,
    Value,
    sorted_labels,
)

# As frameworks name things: dots, slashes, brackets, but no blanks.
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_./:\[\]-]{0,6}", fullmatch=True)
TEXTS = st.sampled_from(["", "net.layer[0]", 'm "x".py:3', "a {b} at c", "é\n\u2028"])
TYPES = st.builds(
    TensorType,
    st.sampled_from(DType),
    st.lists(st.integers(0, 5), max_size=3).map(tuple),
)


def notes() -> st.SearchStrategy[Notes]:
    """Notes on an op, most of them silent about most things."""
    groups = st.builds(
        MultiConv, TEXTS, st.none() | st.integers(0, 9), st.none() | st.floats(0, 1)
    )
    linear = st.builds(LinearProduct, st.sampled_from(LinearPass), st.booleans())
    labels = st.dictionaries(NAMES, TEXTS, max_size=2).map(sorted_labels)
    return st.builds(
        Notes,
        st.none() | st.floats(0, 1),
        st.sampled_from([None, DType.F16, DType.F32]),
        st.none() | st.integers(1, 99),
        st.booleans(),
        st.none()
        | st.builds(SerialSplit, st.sampled_from(SplitDimension), st.integers(0, 4)),
        st.none() | groups,
        TEXTS,
        st.none() | linear,
        labels,
    )


def executions() -> st.SearchStrategy[Execution]:
    count = st.integers(1, 4)
    return st.builds(
        Execution,
        st.sampled_from(Strategy),
        count,
        count,
        count,
        count,
        count,
        count,
        st.booleans(),
    )


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Given values, then generic ops over what is there; one may be a view."""
    names = draw(st.lists(NAMES, min_size=2, max_size=8, unique=True))
    execution = draw(executions())
    num_given = draw(st.integers(1, len(names)))
    values: dict[str, Value] = {}
    roles = st.sampled_from([r for r in Role if r is not Role.ACTIVATION])
    for name in names[:num_given]:
        values[name] = Value(name, draw(TYPES), draw(roles))
    ops: list[Op] = []
    for name in names[num_given:]:
        known = list(values)
        ops.append(_draw_op(draw, name, known, execution.num_chips))
        storage = draw(st.sampled_from(["", *known]))
        values[name] = Value(name, draw(TYPES), Role.ACTIVATION, storage)
    outputs = draw(st.lists(st.sampled_from(list(values)), max_size=2, unique=True))
    return Graph(draw(TEXTS), values, tuple(ops), tuple(outputs), execution)


def _draw_op(draw: st.DrawFn, name: str, known: list[str], num_chips: int) -> Op:
    inputs = draw(st.lists(st.sampled_from(known), max_size=3))
    return Op(
        f"op_{name}",
        "generic",
        tuple(inputs),
        (name,),
        {"framework_op": draw(TEXTS)},
        draw(st.sampled_from(Phase)),
        draw(st.integers(0, num_chips - 1)),
        draw(st.integers(0, 3)),
        draw(TEXTS),
        draw(TEXTS),
        draw(st.just(NO_NOTES) | notes()),
    )
