"""Synthetic data: nothing travels between host and device."""

from __future__ import annotations

from popple.graph import Role, parse_graph, verify
from popple.options import ModelOptions
from popple.pipeline import model_graph
from popple.place import MakeOnDevice
from popple.program import StreamCopy
from popple.target import Target, load_system

GRAPH = parse_graph("""
graph "g" {
  input %x : f32[4,8]
  input %z : f32[4,8]
  add %y : %y : f32[4,8] = (%x, %z) forward chip=0 stage=0
  output %y
}
""")


def streams(*synthetic: str) -> set[str]:
    """Names of the stream copies of the program."""
    options = ModelOptions(synthetic=synthetic)
    modelled = model_graph(GRAPH, Target(load_system("bow-pod16"), 1, 1), options)
    steps = (row.step for row in modelled.simulation.steps)
    return {step.name for step in steps if isinstance(step, StreamCopy)}


def test_named_inputs_are_made_once() -> None:
    changed = MakeOnDevice(frozenset({"x", "y"})).apply(GRAPH)
    verify(changed)
    assert changed.values["x"].role is Role.CONSTANT
    assert changed.values["z"].role is Role.INPUT
    assert changed.outputs == ()
    assert changed.ops == GRAPH.ops


def test_only_what_is_not_synthetic_is_streamed() -> None:
    assert streams() == {"x/stream_in", "z/stream_in", "y/stream_out"}
    assert streams("x") == {"z/stream_in", "y/stream_out"}
    assert streams("x", "z", "y") == set()
