"""Group, layer and instance normalisation: groups, statistics, variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

v1 = tf.compat.v1
norms = ipu.normalization_ops


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(tensor: Any) -> Any:
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return session.run(tensor)


def images() -> Any:
    return np.random.default_rng(0).normal(size=(2, 3, 3, 6)).astype(np.float32)


def normalized(x: Any, members: list[int]) -> Any:
    """The channels `members` of every example, as one group."""
    group = x[..., members]
    mean = group.mean(axis=(1, 2, 3), keepdims=True)
    return (group - mean) / np.sqrt(group.var(axis=(1, 2, 3), keepdims=True) + 1e-4)


@pytest.mark.parametrize(
    ("strided", "members"), [(True, [1, 3, 5]), (False, [3, 4, 5])]
)
def test_the_second_of_two_groups(strided: bool, members: list[int]) -> None:
    x = images()
    found = run(norms.group_norm(x, epsilon=1e-4, strided_channel_grouping=strided))
    assert np.allclose(found[..., members], normalized(x, members), atol=1e-5)


def test_layer_and_instance_norm_are_extremes() -> None:
    x = images()
    layer, instance = run(
        [norms.layer_norm(x, epsilon=1e-4), norms.instance_norm(x, epsilon=1e-4)]
    )
    assert np.allclose(layer, normalized(x, list(range(6))), atol=1e-5)
    assert np.allclose(instance[..., [2]], normalized(x, [2]), atol=1e-5)


def test_channels_may_come_first() -> None:
    x = images()
    last = norms.group_norm(x, epsilon=1e-4, scope="last")
    first = norms.group_norm(
        x.transpose(0, 3, 1, 2), channels_axis=1, epsilon=1e-4, scope="first"
    )
    found, other = run([last, first])
    assert np.allclose(found, other.transpose(0, 2, 3, 1), atol=1e-5)


def test_variables_scale_and_shift() -> None:
    x = images()
    start = {
        "gamma": v1.constant_initializer(2.0),
        "beta": v1.constant_initializer(3.0),
    }
    found = run(
        norms.layer_norm(x, epsilon=1e-4, param_initializers=start, scope="norm")
    )
    assert np.allclose(found, 2 * normalized(x, list(range(6))) + 3, atol=1e-5)
    assert [v.name for v in v1.trainable_variables()] == ["norm/beta:0", "norm/gamma:0"]


def test_variables_can_be_left_out() -> None:
    norms.group_norm(images(), center=False, scale=False)
    assert v1.global_variables() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": 7}, "Invalid groups 7 for 6 channels"),
        ({"groups": 4}, "6 channels is not commensurate with 4 groups"),
        ({"channels_axis": 4}, "Axis is out of bounds"),
        ({"channels_axis": 2}, "Unsupported data format"),
    ],
)
def test_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        norms.group_norm(images(), **arguments)
