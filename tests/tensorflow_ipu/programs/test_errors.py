"""Errors that operations raise while a program runs say our text and no more."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import _errors  # noqa: E402

from tests.tensorflow_ipu.keras.keras_models import X, compiled, sequential, strategy  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")

KINDS = [
    tf.errors.FailedPreconditionError,
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
]
TEXT = "Something [1] is wrong: put it `right`."


def fail(kind: Any) -> Any:
    with tf.control_dependencies([_errors.failing(kind, TEXT)]):
        return tf.constant(1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_of_a_strategy_says_it_plainly(kind: Any) -> None:
    with pytest.raises(kind) as raised:
        strategy().run(tf.function(lambda: fail(kind)))
    assert raised.value.message == TEXT


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_says_it_plainly(kind: Any) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        failing = fail(kind)
        with pytest.raises(kind) as raised:
            session.run(failing)
    assert raised.value.message == TEXT


def test_errors_of_others_are_theirs() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        checked = tf.debugging.check_numerics(tf.constant(float("nan")), "theirs")
        with pytest.raises(tf.errors.InvalidArgumentError, match="had NaN values"):
            session.run(checked)


def test_a_keras_model_says_it_plainly() -> None:
    with strategy(2).scope():
        model = compiled(sequential(), 1)
        model.set_pipeline_stage_assignment([0, 1])
        with pytest.raises(tf.errors.FailedPreconditionError) as raised:
            model.predict(X, batch_size=4)
    assert raised.value.message.startswith("The number of iterations of the pipeline")


def test_shapes_that_depend_on_values_are_refused() -> None:
    positive = tf.function(lambda x: tf.boolean_mask(x, x > 0))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shapes .* are static"):
        strategy().run(positive, [tf.constant([1.0, -1.0])])


def test_shapes_that_depend_on_values_are_refused_in_graphs() -> None:
    with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
        given = tf.compat.v1.placeholder(tf.float32, [2])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Where .* static"):
            ipu.ipu_compiler.compile(lambda x: tf.where(x > 0), [given])
