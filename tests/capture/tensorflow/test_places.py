"""Chips and stages, also of ops that nobody put anywhere."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf
from tensorflow.compiler.xla import xla_data_pb2

from popple.capture.tensorflow.builder import Mark
from popple.capture.tensorflow.places import settle, with_places
from popple.graph import Op, Phase, parse_graph
from popple.marks import STAGE
from tests.capture.tensorflow.tracing import (
    lower_graph,
    marked,
    of_kind,
    spec,
    trace,
)


def chain(*phases: Phase) -> list[Op]:
    """Ops that each read what the one before made."""
    return [
        Op(f"op{i}", "neg", (f"v{i}",), (f"v{i + 1}",), phase=phase)
        for i, phase in enumerate(phases)
    ]


def test_an_op_goes_where_its_inputs_come_from() -> None:
    forward = (Phase.FORWARD,) * 3
    assert settle(chain(*forward), [2, None, None]) == [2, 2, 2]


def test_an_op_without_inputs_goes_to_its_first_reader() -> None:
    forward = (Phase.FORWARD,) * 3
    assert settle(chain(*forward), [None, None, 1]) == [1, 1, 1]


@pytest.mark.parametrize(("phase", "expected"), [("forward", 2), ("backward", 1)])
def test_between_stages_the_phase_decides(phase: str, expected: int) -> None:
    ops = [
        Op("a", "neg", ("x",), ("a",)),
        Op("b", "neg", ("x",), ("b",)),
        Op("c", "add", ("a", "b"), ("c",), phase=Phase(phase)),
    ]
    assert settle(ops, [1, 2, None])[-1] == expected


GRAPH = parse_graph("""graph "g" {
  input %x : f32[4]
  neg %a : %a : f32[4] = (%x) forward chip=0 stage=0
  neg %b : %b : f32[4] = (%a) forward chip=0 stage=0
}
""")


@pytest.mark.parametrize(
    ("marks", "mapping", "expected"),
    [
        ((Mark(0), Mark(1)), (), [(0, 0), (1, 1)]),
        ((Mark(0, 3), Mark(1, 2)), (), [(3, 0), (2, 1)]),
        ((Mark(0, 3), Mark(1, 2)), (1, 0), [(1, 0), (0, 1)]),
        ((Mark(None, 0), Mark(None, 1)), (), [(0, 0), (1, 0)]),
    ],
)
def test_chips_of_stages(marks: Any, mapping: Any, expected: Any) -> None:
    placed = with_places(GRAPH, marks, mapping)
    assert [(op.chip, op.stage) for op in placed.ops] == expected
    assert placed.execution.num_chips == 1 + max(chip for chip, _ in expected)


def test_backward_ops_are_where_their_forward_ops_are() -> None:
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            with marked(STAGE, {"i": 0}):
                hidden = tf.tanh(x)
            with marked(STAGE, {"i": 1}):
                y = tf.sigmoid(hidden)
            loss = tf.reduce_sum(y)
        return tape.gradient(loss, x)

    lowered = lower_graph(trace(step, spec(3)), device_mapping=(1, 0))
    places = {op.kind: (op.chip, op.stage) for op in lowered.graph.ops}
    assert places["tanh"] == places["tanh_grad"] == (1, 0)
    assert places["sigmoid"] == places["sigmoid_grad"] == (0, 1)
    assert lowered.num_stages == 2


# Device -1 is all of them, which says of one operation nothing.
@pytest.mark.parametrize(("device", "chip"), [(3, 3), (-1, 0)])
def test_sharded_ops_are_on_their_chip(device: int, chip: int) -> None:
    data: Any = xla_data_pb2
    sharding = data.OpSharding(
        type=data.OpSharding.MAXIMAL, tile_assignment_devices=[device]
    )

    def function(x: Any) -> Any:
        with marked("_XlaSharding", {"s": sharding.SerializeToString()}):
            return tf.tanh(x)

    graph = lower_graph(trace(function, spec(3))).graph
    assert of_kind(graph, "tanh")[0].chip == chip
    assert graph.execution.num_chips == chip + 1


def test_chips_whose_ops_are_dropped_are_not_counted() -> None:
    def function(x: Any) -> Any:
        with marked(STAGE, {"i": 1}):
            tf.tanh(x)
        return tf.sin(x)

    assert lower_graph(trace(function, spec(3))).graph.execution.num_chips == 1
