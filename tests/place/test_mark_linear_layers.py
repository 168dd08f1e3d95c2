"""Linear layers of a training graph: which of its products are found."""

from __future__ import annotations

from dataclasses import replace

from popple.graph import (
    Graph,
    LinearPass,
    Op,
    Phase,
    Role,
    SerialSplit,
    SplitDimension,
)
from popple.place import MarkLinearLayers
from tests.place.graphs import BATCH, INPUTS, OUTPUTS, linear_layer, single


def marked(graph: Graph) -> Graph:
    return MarkLinearLayers().apply(graph)


def passes_of(graph: Graph) -> dict[str, LinearPass]:
    ops = marked(graph).ops
    return {op.name: found.part for op in ops if (found := op.notes.linear)}


def test_products_of_a_layer_are_found() -> None:
    names = {
        "forward": LinearPass.FORWARD,
        "input": LinearPass.INPUT_GRAD,
        "weight": LinearPass.WEIGHT_GRAD,
    }
    assert passes_of(linear_layer()) == names
    # Unequal sizes say the same: it is what they read that tells.
    assert passes_of(linear_layer(64, 96)) == names


def test_a_gradient_may_have_the_outputs_as_its_rows() -> None:
    ops = marked(linear_layer()).ops
    turned = [op.name for op in ops if op.notes.linear and op.notes.linear.is_turned]
    assert turned == ["weight"]


def test_inference_is_left_alone() -> None:
    graph = linear_layer()
    forward = graph.with_ops(op for op in graph.ops if op.phase is Phase.FORWARD)
    assert marked(forward) is forward


def test_products_may_be_planned_apart() -> None:
    ops = MarkLinearLayers(planned_together=False).apply(linear_layer()).ops
    assert all(op.notes.linear is None for op in ops)


def test_products_with_other_matrices_are_planned_alone() -> None:
    graph = linear_layer()
    other = single("v", OUTPUTS, INPUTS, role=Role.WEIGHT)
    ops = [
        replace(op, inputs=("dy", "v")) if op.name == "input" else op
        for op in graph.ops
        if op.name != "weight"
    ]
    assert passes_of(graph.with_ops(ops, [other])) == {}


def test_a_product_computed_once_more_is_a_forward_one() -> None:
    graph = linear_layer()
    again = Op("again", "matmul", ("x", "wt"), ("y2",), phase=Phase.BACKWARD)
    ops = (*graph.ops[:2], again, *graph.ops[2:])
    found = passes_of(graph.with_ops(ops, [single("y2", BATCH, OUTPUTS)]))
    assert found["again"] == found["forward"] is LinearPass.FORWARD


def test_gradients_of_a_product_in_parts_are_in_parts() -> None:
    # Columns of the forward product are the inner dimension of the input's gradient,
    # and rows of the weights', which is computed the other way round here.
    split = SerialSplit(SplitDimension.COLUMNS, 4)
    graph = linear_layer()
    ops = [
        replace(op, notes=replace(op.notes, serial_split=split))
        if op.name == "forward"
        else op
        for op in graph.ops
    ]
    found = {op.name: op.notes.serial_split for op in marked(graph.with_ops(ops)).ops}
    assert found["forward"] == split
    assert found["input"] == SerialSplit(SplitDimension.INNER, 4)
    assert found["weight"] == SerialSplit(SplitDimension.ROWS, 4)
