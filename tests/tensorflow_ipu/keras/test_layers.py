"""Layers around layers: what they keep, and what their operations are marked with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras.ipu import _tags  # noqa: E402
from keras.ipu.layers import (  # noqa: E402
    CaptureActivationGradients,
    CaptureUpstreamGradients,
)
from tensorflow.python.ipu.eager import backprop  # noqa: E402

from tests.tensorflow_ipu.keras.keras_models import dense  # noqa: E402

ONES = tf.ones([2, 3])


def captured(layer: Any) -> dict[str, Any]:
    """Gradients of the sum of squares of what the layer makes of ones."""
    with backprop.GradientCaptureTape() as tape:
        loss = tf.reduce_sum(layer(ONES) ** 2)
    tape.gradient(loss, layer.trainable_weights)
    return tape.captured_gradients


def test_gradients_of_outputs_are_kept() -> None:
    layer = CaptureUpstreamGradients(dense(1), tag="here")
    # Every output is 3; the derivative of its square is 6.
    np.testing.assert_allclose(captured(layer)["here"][0], [[6.0], [6.0]])
    assert len(layer.trainable_weights) == 2


def test_gradients_of_what_activations_are_given_are_kept() -> None:
    layer = CaptureActivationGradients(dense(1, activation="tanh"), tag="here")
    # tanh'(3) * 2 tanh(3)
    expected = 2 * np.tanh(3.0) * (1 - np.tanh(3.0) ** 2)
    found = captured(layer)["here_activation"][0]
    np.testing.assert_allclose(found, np.full([2, 1], expected), rtol=1e-4)


def test_layers_without_activation_are_refused() -> None:
    assert not CaptureActivationGradients.layer_is_supported(tf.keras.layers.Flatten())
    with pytest.raises(ValueError, match="does not use an activation function"):
        CaptureActivationGradients(tf.keras.layers.Flatten())
    with pytest.raises(ValueError, match="Expected an instance"):
        CaptureUpstreamGradients(ONES)  # pyright: ignore


@pytest.mark.parametrize("kind", [CaptureUpstreamGradients, CaptureActivationGradients])
def test_a_configuration_makes_the_layer_again(kind: Any) -> None:
    layer = kind(dense(2, activation="relu", name="inner"))
    again = kind.from_config(layer.get_config())
    assert again.tag == layer.tag
    assert again.layer.units == 2
    np.testing.assert_array_equal(again(ONES), layer(ONES))


def test_training_reaches_layers_that_know_it() -> None:
    dropping = CaptureUpstreamGradients(tf.keras.layers.Dropout(0.5), tag="d")
    np.testing.assert_array_equal(dropping(ONES, training=False), ONES)
    plain = CaptureUpstreamGradients(dense(1), tag="p")
    assert plain(ONES, training=True).shape == (2, 1)


def tagged_ops(function: Any) -> dict[str, dict[str, Any]]:
    graph = tf.function(function).get_concrete_function().graph
    return {op.name: dict(op.node_def.attr) for op in graph.get_operations()}


def test_operations_carry_the_names_of_the_layers_around_them() -> None:
    inner = tf.keras.Sequential([dense(1, name="leaf")], name="nested")
    outer = tf.keras.Sequential([inner], name="outer")
    outer.build((2, 3))

    def program() -> Any:
        with _tags.tagging(), _tags.phase("forward"):
            return outer(ONES)

    products = [a for name, a in tagged_ops(program).items() if "MatMul" in name]
    layers = {attrs["_ipu_layer"].s for attrs in products if "_ipu_layer" in attrs}
    assert b"outer/nested/leaf" in layers
    assert {attrs["_ipu_phase"].s for attrs in products} == {b"forward"}


def test_nothing_is_marked_unless_asked() -> None:
    layer = dense(1)
    layer.build((2, 3))
    attrs = tagged_ops(lambda: layer(ONES)).values()
    assert not any("_ipu_layer" in each for each in attrs)
