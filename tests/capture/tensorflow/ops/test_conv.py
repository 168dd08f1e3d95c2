"""Convolutions: padding, groups, gradients, and the layout of images."""

from __future__ import annotations

from typing import Any

import pytest

tf: Any = pytest.importorskip("tensorflow")

from popple.graph import MultiConv, Notes, Op, render_notes  # noqa: E402
from popple.place import GroupConvolutions  # noqa: E402
from tests.capture.tensorflow.tracing import (  # noqa: E402
    graph_of,
    kinds,
    lower,
    marked,
    model_program,
    of_kind,
    spec,
)


def conv_of(stride: int, padding: Any, size: int = 3) -> Op:
    graph = graph_of(
        lambda x, k: tf.nn.conv2d(x, k, stride, padding),
        spec(2, 8, 8, 4),
        spec(size, size, 4, 6),
    )
    (op,) = of_kind(graph, "conv")
    assert graph.type_of(op.inputs[0]).shape == (2, 4, 8, 8)
    assert graph.type_of(op.inputs[1]).shape == (6, 4, size, size)
    return op


def test_valid_padding_is_none() -> None:
    assert conv_of(1, "VALID").attrs == {
        "stride": (1, 1),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
    }


def test_same_padding_is_what_the_sizes_need() -> None:
    assert conv_of(1, "SAME").attrs["padding"] == (1, 1)


def test_an_odd_element_of_same_padding_goes_to_the_end() -> None:
    # 4 outputs 2 apart under a kernel of 3 reach 9 elements, one more than the field.
    attrs = conv_of(2, "SAME").attrs
    assert (attrs["padding"], attrs["padding_after"]) == ((0, 0), (1, 1))


def test_explicit_padding() -> None:
    attrs = conv_of(1, [[0, 0], [1, 2], [0, 3], [0, 0]]).attrs
    assert (attrs["padding"], attrs["padding_after"]) == ((1, 0), (2, 3))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_any_padding_are_priced(padding: str, stride: int) -> None:
    lowered = lower(
        lambda x, k: tf.nn.conv2d(x, k, stride, padding),
        spec(2, 8, 8, 4),
        spec(3, 3, 4, 6),
    )
    assert model_program(lowered).simulation.cost.flops > 0


def test_channels_second_need_no_permutation() -> None:
    graph = graph_of(
        lambda x, k: tf.nn.conv2d(x, k, 1, "VALID", data_format="NCHW"),
        spec(2, 4, 8, 8),
        spec(3, 3, 4, 6),
    )
    assert kinds(graph) == ["permute", "conv"]  # of the kernel


def test_depthwise_convolutions_have_a_group_for_every_channel() -> None:
    graph = graph_of(
        lambda x, k: tf.nn.depthwise_conv2d(x, k, (1, 1, 1, 1), "SAME"),
        spec(2, 8, 8, 4),
        spec(3, 3, 4, 2),
    )
    (op,) = of_kind(graph, "conv")
    assert op.attrs["groups"] == 4
    assert graph.type_of(op.inputs[1]).shape == (8, 1, 3, 3)


def test_gradients_have_the_shapes_of_field_and_kernel() -> None:
    def step(x: Any, k: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((x, k))
            y = tf.nn.conv2d(x, k, 2, "SAME")
        return tape.gradient(y, (x, k), y)

    graph = graph_of(step, spec(2, 8, 8, 4), spec(3, 3, 4, 6))
    assert [graph.type_of(name).shape for name in graph.outputs] == [
        (2, 8, 8, 4),
        (3, 3, 4, 6),
    ]
    assert len(of_kind(graph, "conv_input_grad")) == 1
    assert len(of_kind(graph, "conv_weight_grad")) == 1


def test_depthwise_gradients_have_the_shapes_of_field_and_kernel() -> None:
    def step(x: Any, k: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((x, k))
            y = tf.nn.depthwise_conv2d(x, k, (1, 1, 1, 1), "SAME")
        return tape.gradient(y, (x, k), y)

    graph = graph_of(step, spec(2, 8, 8, 4), spec(3, 3, 4, 2))
    assert [graph.type_of(name).shape for name in graph.outputs] == [
        (2, 8, 8, 4),
        (3, 3, 4, 2),
    ]


def test_a_transposed_convolution_is_an_input_gradient() -> None:
    graph = graph_of(
        lambda x, k: tf.nn.conv2d_transpose(x, k, (2, 16, 16, 4), 2),
        spec(2, 8, 8, 6),
        spec(3, 3, 4, 6),
    )
    (op,) = of_kind(graph, "conv_input_grad")
    assert graph.type_of(op.outputs[0]).shape == (2, 4, 16, 16)


def test_layers_behind_one_another_see_no_permutation() -> None:
    def network(x: Any, k: Any, b: Any) -> Any:
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, k, 1, "SAME"), b))
        y = tf.nn.max_pool2d(y, 2, 2, "VALID")
        return tf.reduce_mean(tf.nn.conv2d(y, k, 1, "SAME"), (1, 2))

    graph = graph_of(network, spec(2, 8, 8, 4), spec(3, 3, 4, 4), spec(4))
    moved = [op.inputs[0] for op in of_kind(graph, "permute")]
    assert moved == ["x", "k"]  # what comes from outside; nothing between layers
    (mean,) = of_kind(graph, "reduce_mean")
    assert mean.attrs["dims"] == (2, 3)


def test_marked_convolutions_run_side_by_side_forward_and_backward() -> None:
    group = MultiConv("m:1", reserved_tiles=99)
    wishes = {"s": render_notes(Notes(multi_conv=group)).encode()}

    def step(x: Any, a: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            with marked("_ipu_multi_conv", wishes):
                made = [tf.nn.conv2d(x, k, 1, "SAME") for k in (a, b)]
            loss = sum(tf.reduce_sum(tf.square(m)) for m in made)
        return tape.gradient(loss, [a, b])

    lowered = lower(step, spec(2, 8, 8, 4), spec(3, 3, 4, 6), spec(3, 3, 4, 8))
    for op in of_kind(lowered.graph, "conv"):
        assert op.notes == Notes(multi_conv=group)
    ops = GroupConvolutions().apply(lowered.graph).ops
    spread = [op.kind for op in ops if op.notes.side_by_side]
    assert spread == ["conv", "conv", "conv_weight_grad", "conv_weight_grad"]
    assert model_program(lowered).simulation.cost.cycles > 0
