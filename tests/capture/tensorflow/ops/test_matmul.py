"""Einsum: permutations around one matrix product."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from popple.capture.tensorflow.ops.matmul import expand_dots
from popple.graph import Graph
from tests.capture.tensorflow.tracing import graph_of, kinds, of_kind, spec

EQUATIONS = {
    # attention: [batch, from, heads, size] by [batch, to, heads, size]
    "bfnh,btnh->bnft": ((2, 5, 3, 4), (2, 7, 3, 4), (2, 3, 5, 7), (6, 5, 4, 7)),
    # projection: [batch, rows, width] by [width, heads, size]
    "abc,cde->abde": ((2, 5, 6), (6, 3, 4), (2, 5, 3, 4), (1, 10, 6, 12)),
    # a label of one operand alone is summed first
    "abz,bc->ac": ((2, 5, 9), (5, 3), (2, 3), (1, 2, 5, 3)),
    "...b,bc->...c": ((2, 3, 5), (5, 4), (2, 3, 4), (1, 6, 5, 4)),
}


def einsum(equation: str, *shapes: tuple[int, ...]) -> Graph:
    return graph_of(
        lambda *tensors: tf.einsum(equation, *tensors),
        *(spec(*shape) for shape in shapes),
    )


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_is_a_product_of_matrices(equation: str) -> None:
    left, right, result, (batch, rows, inner, columns) = EQUATIONS[equation]
    graph = einsum(equation, left, right)
    assert graph.type_of(graph.outputs[0]).shape == result
    (product,) = of_kind(graph, "matmul")
    shapes = [graph.type_of(name).shape[-2:] for name in product.inputs]
    assert shapes == [(rows, inner), (inner, columns)]
    size = graph.type_of(product.outputs[0]).num_elements
    assert size == batch * rows * columns


def test_einsum_of_one_operand_reduces_and_permutes() -> None:
    graph = einsum("abc->ca", (2, 3, 4))
    assert kinds(graph) == ["reduce_sum", "permute"]
    assert graph.type_of(graph.outputs[0]).shape == (4, 2)


def test_einsum_of_three_operands_has_no_rule() -> None:
    graph = einsum("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5))
    assert all(kind in ("generic", "matmul", "permute") for kind in kinds(graph))


def test_dots_stand_for_the_trailing_of_the_leading_dimensions() -> None:
    labels, result = expand_dots(["...a", "...b"], "...ab", [3, 2])
    assert [len(term) for term in labels] == [3, 2]
    assert labels[0][1:2] == labels[1][:1]
    assert len(result) == 4
