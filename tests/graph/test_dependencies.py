"""Dependencies: what an op must not overtake."""

from __future__ import annotations

from popple.graph import find_dependencies, parse_graph


def dependencies(*lines: str) -> list[tuple[int, ...]]:
    """Those of ops that are written one a line, over the state %s and the input %x."""
    ops = [f"{line} forward chip=0 stage=0" for line in lines]
    text = "\n".join(['graph "g" {', "state %s : f32[4]", "input %x : f32[4]", *ops])
    graph = parse_graph(f"{text}\n}}")
    return find_dependencies(graph, graph.ops)


def test_makers_come_before_readers() -> None:
    found = dependencies(
        "relu %a : %a : f32[4] = (%x)",
        "neg %b : %b : f32[4] = (%x)",
        "add %c : %c : f32[4] = (%b, %a)",
    )
    assert found == [(), (), (1, 0)]


def test_memory_is_overwritten_after_it_is_read_and_read_after_it_is_overwritten() -> (
    None
):
    found = dependencies(
        "neg %old : %old : f32[4] = (%s)",
        "add %t : %t : f32[4] shares %s = (%s, %x)",
        "neg %new : %new : f32[4] = (%t)",
    )
    assert found == [(), (0,), (1,)]


def test_a_view_reads_what_it_shows_and_writes_nothing() -> None:
    found = dependencies(
        "reshape %v : %v : f32[2,2] shares %s = (%s)",
        "reshape %w : %w : f32[2,2] shares %s = (%s)",
        "add %t : %t : f32[4] shares %s = (%s, %x)",
    )
    # Views do not wait for each other, but what overwrites waits for both.
    assert found == [(), (), (0, 1)]


def test_what_is_off_the_chip_is_loaded_after_it_was_stored() -> None:
    found = dependencies(
        "remote_store %a = (%x)",
        "remote_load %b : %b : f32[4] = ()",
        "remote_store %c = (%b)",
        "remote_load %d : %d : f32[4] = ()",
    )
    # A store stands for all before it: stores follow each other.
    assert found == [(), (0,), (1, 0), (2,)]
