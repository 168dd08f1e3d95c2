"""Notes: their text form, what beats what, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given

from popple.errors import GraphError
from popple.graph import (
    NO_NOTES,
    DType,
    LinearPass,
    LinearProduct,
    MultiConv,
    Notes,
    SerialSplit,
    SplitDimension,
    parse_notes,
    render_notes,
)
from tests.graph.strategies import notes


@given(notes())
def test_the_text_form_gives_the_notes_back(written: Notes) -> None:
    assert parse_notes(render_notes(written)) == written


def test_only_what_is_said_is_written() -> None:
    assert render_notes(NO_NOTES) == "{}"
    assert parse_notes("") == NO_NOTES
    group = MultiConv("g", reserved_tiles=9)
    text = render_notes(Notes(multi_conv=group, partials=DType.F16))
    expected = '{"partials": "f16", "multi_conv": {"group": "g", "reserved_tiles": 9}}'
    assert text == expected


def test_the_later_note_beats_the_earlier() -> None:
    first = Notes(memory_proportion=0.1, block_size=16)
    second = Notes(memory_proportion=0.2, is_checkpoint=True)
    both = Notes(memory_proportion=0.2, block_size=16, is_checkpoint=True)
    assert first.updated(second) == both


def test_labels_of_both_are_kept() -> None:
    first = Notes(labels=(("a", "1"), ("b", "1")))
    second = Notes(labels=(("b", "2"), ("c", "2")))
    labels = (("a", "1"), ("b", "2"), ("c", "2"))
    assert first.updated(second) == Notes(labels=labels)


@given(notes(), notes())
def test_what_nothing_is_said_about_stays(one: Notes, other: Notes) -> None:
    assert one.updated(NO_NOTES) == NO_NOTES.updated(one) == one
    silent = one.said().keys() - other.said().keys()
    updated = one.updated(other)
    assert all(getattr(updated, name) == getattr(one, name) for name in silent)


def test_notes_are_keys() -> None:
    turned = LinearProduct(LinearPass.WEIGHT_GRAD, is_turned=True)
    split = SerialSplit(SplitDimension.INNER, 2)
    made = [Notes(linear=turned, serial_split=split) for _ in range(2)]
    assert len({*made, NO_NOTES}) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"memory_proportions": 1}', "Did you mean 'memory_proportion'"),
        ('{"memory_proportion": "all"}', "cannot read the notes"),
        ('{"multi_conv": {"tiles": 3}}', "cannot read the notes"),
        ('{"linear": {"part": "sideways"}}', "cannot read the notes"),
        ('{"partials": "i32"}', "partial sums cannot be i32"),
    ],
)
def test_bad_notes_are_refused(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        parse_notes(text)


def test_fields_are_found_by_their_names() -> None:
    # `said` names fields as the text form does: each is a field of `Notes`.
    everything = Notes(
        memory_proportion=0.5,
        partials=DType.F32,
        block_size=1,
        is_checkpoint=True,
        serial_split=SerialSplit(SplitDimension.ROWS, 2),
        multi_conv=MultiConv("g"),
        side_by_side="u",
        linear=LinearProduct(LinearPass.FORWARD),
        labels=(("a", "b"),),
    )
    assert list(everything.said()) == list(Notes.__dataclass_fields__)
    assert parse_notes(render_notes(everything)) == everything
