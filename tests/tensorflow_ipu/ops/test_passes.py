"""Marks of the passes of training on operations and on their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.compiler.xla import xla_data_pb2  # noqa: E402
from tensorflow.python.ipu import scopes  # noqa: E402
from tensorflow.python.ipu.ops import op_util  # noqa: E402

v1 = tf.compat.v1
RANDOM = np.random.default_rng(3)


def numbers(*shape: int) -> Any:
    return tf.constant(RANDOM.normal(size=shape), tf.float32)


def mark(tensor: Any) -> str:
    """Which pass the operation behind a tensor is marked with.

    The gradient of a batch of products is summed where the other operand is one.
    """
    while tensor.op.type in ("Reshape", "Sum"):
        tensor = tensor.op.inputs[0]
    packed = tensor.op.get_attr(scopes.FRONTEND_ATTRIBUTES_NAME)
    return xla_data_pb2.FrontendAttributes.FromString(packed).map["ML_TYPE"]


FORWARD = {
    "Conv2D": lambda: (numbers(1, 4, 4, 2), numbers(2, 2, 2, 3), conv_2d),
    "Conv3D": lambda: (numbers(1, 3, 3, 3, 1), numbers(2, 2, 2, 1, 2), conv_3d),
    "MatMul": lambda: (numbers(2, 3), numbers(3, 4), tf.matmul),
    "BatchMatMulV2": lambda: (numbers(5, 2, 3), numbers(3, 4), tf.matmul),
    "DepthwiseConv2dNative": lambda: (
        numbers(1, 4, 4, 2),
        numbers(2, 2, 2, 1),
        depthwise,
    ),
}


def conv_2d(images: Any, kernel: Any) -> Any:
    return tf.nn.conv2d(images, kernel, 1, "VALID")


def conv_3d(volumes: Any, kernel: Any) -> Any:
    return tf.nn.conv3d(volumes, kernel, [1] * 5, "VALID")


def depthwise(images: Any, kernel: Any) -> Any:
    return tf.nn.depthwise_conv2d(images, kernel, [1] * 4, "VALID")


@pytest.mark.parametrize("kind", FORWARD)
def test_gradients_are_marked_and_those_of_tensorflow(kind: str) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        inputs, weights, forward = FORWARD[kind]()
        stock = tf.gradients(forward(inputs, weights), [inputs, weights])
        with op_util.gradient_override_scope(training=True):
            result = forward(inputs, weights)
        assert result.op.type == kind
        assert mark(result) == "TRAINING_FWD"
        found = tf.gradients(result, [inputs, weights])
        for ours, expected in zip(*session.run([found, stock]), strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-6)
        assert [mark(tensor) for tensor in found] == ["TRAINING_BWD", "TRAINING_WU"]


def test_inference_is_marked_as_such() -> None:
    with tf.Graph().as_default(), op_util.gradient_override_scope(training=False):
        assert mark(tf.matmul(numbers(1, 2), numbers(2, 1))) == "INFERENCE_FWD"


def test_the_scope_is_open_to_eager_programs() -> None:
    with op_util.gradient_override_scope(training=True):
        assert tf.matmul([[2.0]], [[3.0]]).numpy() == 6.0


def test_both_maps_make_one() -> None:
    both = op_util.gradients_override_map()
    assert both["Conv3D"] == op_util.conv_gradients_override_map()["Conv3D"]
    assert both["MatMul"] == op_util.matmul_gradients_override_map()["MatMul"]
