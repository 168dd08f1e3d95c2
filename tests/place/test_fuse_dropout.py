"""FuseDropout: products with random masks become one op each, and no mask is kept."""

from __future__ import annotations

from popple.graph import Graph, parse_graph
from popple.place import FuseDropout, run_passes
from tests.place.graphs import named

# As PyTorch spells it out: numbers drawn in place, scaled, multiplied with twice.
MASK = """
graph "mask" {
  input %x : f16[8]
  fill %e : %e : f16[8] = () forward chip=0 stage=0
  bernoulli %r : %r : f16[8] shares %e = (%e) forward chip=0 stage=0
  div %m : %m : f16[8] shares %r = (%r) forward chip=0 stage=0
  mul %y : %y : f16[8] = (%x, %m) forward chip=0 stage=0
  fill %g : %g : f16[8] = () backward chip=0 stage=0
  mul %dx : %dx : f16[8] = (%g, %m) backward chip=0 stage=0
  output %y
  output %dx
}
"""
# As TensorFlow does: uniform numbers compared with a rate, and a choice by them.
CHOICE = """
graph "choice" {
  input %x : f16[8]
  constant %rate : f16[]
  constant %zero : f16[]
  uniform %r : %r : f16[8] = () forward chip=0 stage=0
  greater_equal %m : %m : bool[8] = (%r, %rate) forward chip=0 stage=0
  select %y : %y : f16[8] = (%m, %x, %zero) forward chip=0 stage=0
  output %y
}
"""


def fused(text: str) -> Graph:
    return run_passes(parse_graph(text), [FuseDropout()])


def test_each_product_with_a_mask_is_one_op() -> None:
    graph = fused(MASK)
    assert [(op.kind, op.inputs) for op in graph.ops] == [
        ("dropout", ("x",)),
        ("fill", ()),
        ("dropout", ("g",)),
    ]
    assert named(graph, "dx").phase is named(parse_graph(MASK), "dx").phase


def test_a_choice_by_random_numbers_is_one_op() -> None:
    assert [(op.kind, op.inputs) for op in fused(CHOICE).ops] == [("dropout", ("x",))]


def test_a_mask_that_is_read_otherwise_stays() -> None:
    graph = parse_graph(MASK.replace("output %y", "output %m"))
    assert run_passes(graph, [FuseDropout()]).ops == graph.ops


def test_a_mask_for_many_elements_at_a_time_stays() -> None:
    # One number for each row, as layers are dropped: the product is larger than it.
    text = CHOICE.replace("f16[8]", "f16[8,4]").replace("bool[8]", "bool[8,1]")
    text = text.replace("%r : f16[8,4]", "%r : f16[8,1]")
    graph = parse_graph(text)
    assert run_passes(graph, [FuseDropout()]).ops == graph.ops
