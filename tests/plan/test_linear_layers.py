"""Linear layers of a training graph: which products are found, and how they lie."""

from __future__ import annotations

from dataclasses import replace

from popple.graph import DType, Graph, Op, Phase, Role, TensorType, Value
from popple.plan import plan_graph
from popple.plan.linear_layers import PASS, TURNED, mark_linear_layers
from popple.plan.lowering.lower import PlannedProgram
from popple.plan.opplan import Compute, Move
from popple.target import load_target

BATCH, INPUTS, OUTPUTS = 8, 1000, 1000


def value(name: str, *shape: int, role: Role = Role.ACTIVATION, of: str = "") -> Value:
    return Value(name, TensorType(DType.F32, shape), role, of)


def make_layer(inputs: int = INPUTS, outputs: int = OUTPUTS) -> Graph:
    """x @ w with both gradients, that of w as torch makes it: dy^T @ x."""
    turn = {"order": (1, 0)}
    ops = (
        Op("t", "permute", ("w",), ("wt",), turn),
        Op("forward", "matmul", ("x", "wt"), ("y",)),
        Op("input", "matmul", ("dy", "w"), ("dx",), phase=Phase.BACKWARD),
        Op("s", "permute", ("dy",), ("dyt",), turn, Phase.BACKWARD),
        Op("weight", "matmul", ("dyt", "x"), ("dw",), phase=Phase.BACKWARD),
        Op("step", "sgd_update", ("w", "dw"), ("w2",), phase=Phase.UPDATE),
    )
    values = (
        value("x", BATCH, inputs, role=Role.STATE),
        value("w", outputs, inputs, role=Role.WEIGHT),
        value("dy", BATCH, outputs, role=Role.STATE),
        value("wt", inputs, outputs, of="w"),
        value("dyt", outputs, BATCH, of="dy"),
        value("y", BATCH, outputs),
        value("dx", BATCH, inputs),
        value("dw", outputs, inputs),
        value("w2", outputs, inputs, of="w"),
    )
    return Graph("g", {v.name: v for v in values}, ops, ("y", "dx"))


def passes_of(graph: Graph) -> dict[str, object]:
    marked = mark_linear_layers(graph)
    return {op.name: op.attrs[PASS] for op in marked.ops if PASS in op.attrs}


def planned_layer() -> PlannedProgram:
    return plan_graph(make_layer(), load_target("gc200"))


def test_products_of_a_layer_are_found() -> None:
    names = {"forward": "FORWARD", "input": "INPUT_GRAD", "weight": "WEIGHT_GRAD"}
    assert passes_of(make_layer()) == names
    # Unequal sizes say the same: it is what they read that tells.
    assert passes_of(make_layer(64, 96)) == names


def test_a_gradient_may_have_the_outputs_as_its_rows() -> None:
    turned = [
        op.name for op in mark_linear_layers(make_layer()).ops if TURNED in op.attrs
    ]
    assert turned == ["weight"]


def test_inference_is_left_alone() -> None:
    graph = make_layer()
    forward = graph.with_ops(op for op in graph.ops if op.phase is Phase.FORWARD)
    assert mark_linear_layers(forward) is forward


def test_products_with_other_matrices_are_planned_alone() -> None:
    graph = make_layer()
    other = value("v", OUTPUTS, INPUTS, role=Role.WEIGHT)
    ops = [
        replace(op, inputs=("dy", "v")) if op.name == "input" else op
        for op in graph.ops
        if op.name != "weight"
    ]
    assert passes_of(graph.with_ops(ops, [other])) == {}


def test_a_product_computed_once_more_is_a_forward_one() -> None:
    graph = make_layer()
    again = Op("again", "matmul", ("x", "wt"), ("y2",), phase=Phase.BACKWARD)
    ops = (*graph.ops[:2], again, *graph.ops[2:])
    found = passes_of(graph.with_ops(ops, [value("y2", BATCH, OUTPUTS)]))
    assert found["again"] == found["forward"] == "FORWARD"


def test_weights_stay_on_their_tiles_in_a_joint_plan() -> None:
    planned = planned_layer()
    steps = {name: planned.plans[name].steps for name in ("forward", "input", "step")}
    moves = {
        n: [s.name for s in found if isinstance(s, Move)] for n, found in steps.items()
    }
    # Weights are what is called inputs here: their operand is the field.
    assert all("inputs" not in name for names in moves.values() for name in names)
    assert moves["step"] == []
    first = steps["input"][0]
    assert isinstance(first, Compute)
    assert first.name == "transpose inputs"


def test_the_gradient_lies_as_the_weights_do() -> None:
    mappings = planned_layer().mappings
    assert mappings["dw"] == mappings["w"]
