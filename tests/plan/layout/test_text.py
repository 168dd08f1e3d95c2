"""The text of a layout reads back as the layout, however many views it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import PlanError
from popple.plan.layout import (
    ConvTiles,
    Flat,
    Grouped,
    JointTiles,
    Layout,
    Named,
    PoolTiles,
    Unknown,
    parse_layout,
    permuted,
    sliced,
)
from tests.plan.layout.chains import chains

SIZE = 96
DIMS = st.lists(st.integers(0, 9), max_size=3).map(tuple)
TILES = st.one_of(
    st.builds(
        ConvTiles,
        role=st.sampled_from(["in", "weights", "out"]),
        groups=st.integers(1, 9),
        field=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
        kernel=st.integers(1, 9),
        ins=st.integers(1, 99),
        outs=st.integers(1, 99),
        out_parts=st.integers(1, 9),
        in_parts=st.integers(1, 9),
        is_swapped=st.booleans(),
        first_tile=st.integers(0, 9),
    ),
    st.builds(JointTiles, *(st.integers(1, 99),) * 3),
    st.builds(PoolTiles, st.integers(1, 1472)),
)
ORDERS = st.one_of(
    st.builds(Flat, st.integers(0, 1471)),
    st.builds(Grouped, DIMS, st.integers(0, 2), st.integers(1, 64), TILES),
    st.builds(Named, st.sampled_from(["states", "ctc sum"]), DIMS),
)
UNKNOWN = st.builds(Unknown, st.sampled_from(["slice", "diagonal"]), DIMS, DIMS, DIMS)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """A base, views of it, and now and then what is made of that."""
    layout = Layout(draw(ORDERS))
    for link in draw(chains(SIZE)):
        layout = layout.viewed(link.view())
    if draw(st.booleans()):
        layout = layout.viewed(draw(UNKNOWN))
    kept = tuple(draw(st.lists(st.booleans(), min_size=1, max_size=3)))
    made = [layout, layout.reduced(kept), layout.part(4), layout.ring()]
    chosen = draw(st.sampled_from(made))
    return (
        chosen.viewed(sliced((6, 4), None, (2, 4))) if draw(st.booleans()) else chosen
    )


@given(layouts())
def test_text_reads_back(layout: Layout) -> None:
    assert parse_layout(str(layout)) == layout


def test_the_text_of_a_layout() -> None:
    order = Grouped((64, 128), 1, 16, ConvTiles("out", 1, (1, 4), 1, 2, 8))
    layout = Layout(order).viewed(permuted((64, 128), (1, 0)))
    base = "grouped[64,128/1:16|out g1f1x4k1i2o8s1.1]"
    assert str(layout) == f"{base}>view[8192:128x1,64x128+0]"
    assert str(Layout(Flat(16)).reduced((True, False))) == "reduced[1,0](linear+16)"


@pytest.mark.parametrize("text", ["", "linear>", "grouped[4/0:2|odd]", "view[3:1x1+0]"])
def test_text_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="no part of a layout"):
        parse_layout(text)
