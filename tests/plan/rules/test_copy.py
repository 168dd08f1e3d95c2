"""Streams, copies between chips, and stashes that lie beside their values."""

from popple.plan.layout import Layout, Named
from popple.plan.mapping import linear_mapping
from popple.plan.opplan import Compute, HostCopy, LinkCopy, TileMapping
from popple.program import TileVector
from tests.plan.machines import bow, plan
from tests.plan.signatures import f16, make

MATRIX = f16(64, 96)
LINEAR = linear_mapping(MATRIX, bow().chip)
RING = f16(3, 64, 96)


def test_streams_name_their_direction() -> None:
    arriving = plan(make("stream_in", [], [MATRIX])).steps[0]
    leaving = plan(make("stream_out", [MATRIX], [])).steps[0]
    assert isinstance(arriving, HostCopy)
    assert not arriving.to_host
    assert isinstance(leaving, HostCopy)
    assert leaving.to_host


def test_a_copy_keeps_the_tile_numbers() -> None:
    made = plan(make("chip_copy", [MATRIX], [MATRIX], source=2), (LINEAR,))
    (step,) = made.steps
    assert isinstance(step, LinkCopy)
    assert (step.source_chip, step.num_bytes) == (2, MATRIX.num_bytes)
    assert made.outputs == (LINEAR,)


def test_a_new_ring_is_wished_beside_its_value() -> None:
    made = plan(make("stash", [RING, MATRIX], [RING]), (None, LINEAR))
    assert [type(step) for step in made.steps] == [Compute]
    assert made.outputs[0].bytes_by_tile == LINEAR.bytes_by_tile.scaled(3)
    assert made.inputs[0] == made.outputs[0]


def test_what_was_stashed_is_restored_where_it_lay() -> None:
    stash = plan(make("stash", [RING, MATRIX], [RING]), (None, LINEAR))
    restore = make("restore", [RING], [MATRIX])
    assert plan(restore, stash.outputs).outputs == (LINEAR,)


def test_a_load_lies_where_what_it_is_like_lies() -> None:
    few_tiles = TileMapping(
        TileVector.of([(4, 3072), (1468, 0)]), Layout(Named("four"))
    )
    made = plan(make("remote_load", [MATRIX], [MATRIX]), (few_tiles,))
    assert made.outputs[0].bytes_by_tile == few_tiles.bytes_by_tile
    (copy,) = made.steps
    assert isinstance(copy, HostCopy)
    assert copy.is_remote_buffer
    assert not copy.to_host
