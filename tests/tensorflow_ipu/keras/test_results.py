"""What fit, evaluate and predict bring back: metrics, predictions, callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tests.tensorflow_ipu.keras.keras_models import (  # noqa: E402
    X,
    Y,
    compiled,
    dense,
    functional,
    sequential,
    strategy,
    weights_after,
)

pytestmark = pytest.mark.usefixtures("own_pod")

QUIET = {"batch_size": 4, "verbose": 0}
FROZEN = {"optimizer": "sgd", "loss": "mse"}


class Heard(tf.keras.callbacks.Callback):
    """Keeps what it is told about batches."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[int] = []
        self.ended: list[tuple[int, Any]] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.begun.append(batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.ended.append((batch, logs["loss"]))

    on_test_batch_end = on_train_batch_end


def losses(model: Any) -> np.ndarray[Any, Any]:
    """The loss of every batch of four."""
    errors = np.mean((model(X).numpy() - Y) ** 2, axis=1)
    return errors.reshape(8, 4).mean(1)


def test_metrics_are_means_since_the_epoch_began() -> None:
    with strategy().scope():
        model = compiled(sequential(), 4)
        model.optimizer.learning_rate = 0.0
        history = model.fit(X, Y, epochs=2, shuffle=False, **QUIET)
    expected = losses(model).mean()
    np.testing.assert_allclose(history.history["loss"], [expected] * 2, rtol=1e-5)


def pipelined_losses(accumulate: bool) -> list[float]:
    """Losses of two epochs of two updates, and of an evaluation."""
    with strategy(2).scope():
        model = compiled(sequential(), 8)
        model.set_pipeline_stage_assignment([0, 1])
        model.set_pipelining_options(4, accumulate_outfeed=accumulate)
        history = model.fit(X, Y, epochs=2, shuffle=False, **QUIET)
        return [*history.history["loss"], model.evaluate(X, Y, **QUIET)]


def test_accumulating_the_outfeed_changes_no_metric() -> None:
    np.testing.assert_allclose(pipelined_losses(True), pipelined_losses(False))


def test_callbacks_hear_of_executions() -> None:
    heard = Heard()
    with strategy().scope():
        model = compiled(sequential(), 4)
        model.fit(X, Y, callbacks=[heard], **QUIET)
    assert heard.begun == [0, 4]
    assert [step for step, _ in heard.ended] == [3, 7]
    assert int(model._train_counter) == 8


def test_asynchronous_callbacks_hear_of_every_step_and_replica() -> None:
    heard = Heard()
    with strategy(2).scope():
        model = compiled(sequential(), 2)
        model.set_asynchronous_callbacks(True)
        model.evaluate(X, Y, callbacks=[heard], **QUIET)
    steps = [step for step, _ in heard.ended]
    assert steps == [0, 0, 1, 1, 2, 2, 3, 3]
    # Replica r has the batches r, r + 2, ...: its mean after each of them.
    per_replica = losses(model).reshape(4, 2)
    means = np.cumsum(per_replica, 0) / np.arange(1, 5)[:, None]
    np.testing.assert_allclose([loss for _, loss in heard.ended], means.ravel(), 1e-5)


def test_what_an_asynchronous_callback_raises_is_raised() -> None:
    class Fails(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise ArithmeticError("enough")

    with strategy().scope():
        model = compiled(sequential(), 4)
        model.set_asynchronous_callbacks(True)
        with pytest.raises(ArithmeticError, match="enough"):
            model.fit(X, Y, callbacks=[Fails()], **QUIET)


@pytest.mark.parametrize(
    ("method", "reduce"),
    [
        ("NONE", lambda each: each[-1]),
        ("LIST", lambda each: each),
        ("SUM", np.sum),
        ("MEAN", np.mean),
    ],
)
def test_metrics_of_replicas_are_reduced_as_asked(method: str, reduce: Any) -> None:
    with strategy(2).scope():
        model = compiled(functional(), 2)
        model.set_replication_options(method)
        result = model.evaluate(X, Y, **QUIET)
    per_replica = losses(model).reshape(4, 2).mean(0)
    np.testing.assert_allclose(result, reduce(per_replica), rtol=1e-5)


def test_replicas_forget_their_metrics_between_epochs() -> None:
    with strategy(2).scope():
        model = compiled(functional(), 4)
        first = model.evaluate(X, Y, **QUIET)
        assert model.evaluate(X, Y, **QUIET) == pytest.approx(first)


@pytest.mark.parametrize("num_ipus", [1, 2])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_predictions_are_in_the_order_of_samples(
    num_ipus: int, asynchronous: bool
) -> None:
    with strategy(num_ipus).scope():
        model = compiled(sequential(), 2)
        model.set_asynchronous_callbacks(asynchronous)
        outputs = model.predict(X, batch_size=4)
    np.testing.assert_allclose(outputs, model(X), rtol=1e-5)


def test_validation_is_an_evaluation() -> None:
    with strategy().scope():
        model = compiled(sequential(), 4)
        history = model.fit(
            X, Y, epochs=2, validation_data=(X, Y), validation_freq=2, **QUIET
        )
        loss = model.evaluate(X, Y, **QUIET)
    assert history.history["val_loss"] == [pytest.approx(loss)]


def test_a_test_step_of_ones_own_names_its_results() -> None:
    class Own(tf.keras.Sequential):
        def test_step(self, data: Any) -> dict[str, Any]:
            return {"largest": tf.reduce_max(data[0])}

    with strategy().scope():
        model = compiled(Own([tf.keras.layers.Dense(1)]), 8)
        result = model.evaluate(X, Y, return_dict=True, **QUIET)
    assert result == {"largest": X[-4:].max()}


class Stepping(tf.keras.Sequential):
    """A model that takes its steps itself, and reports twice the loss."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        weights = self.trainable_variables
        gradients = tape.gradient(loss, weights)
        self.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return {"twice": 2.0 * loss}


class Inheriting(tf.keras.Sequential):
    """A model that adds to what every model does in a step."""

    def train_step(self, data: Any) -> dict[str, Any]:
        return {**super().train_step(data), "one": tf.ones([])}


@pytest.mark.parametrize("num_ipus", [1, 2])
@pytest.mark.parametrize(("own", "name"), [(Stepping, "twice"), (Inheriting, "one")])
def test_a_train_step_of_ones_own_trains(own: Any, name: str, num_ipus: int) -> None:
    with strategy(num_ipus).scope():
        model = compiled(own([dense(2), dense(1)]), 8 // num_ipus)
        given = {"batch_size": 4 // num_ipus, "shuffle": False, "verbose": 0}
        history = model.fit(X, Y, **given)
        found = model.get_weights()
    batches = [(X[n : n + 4], Y[n : n + 4]) for n in range(0, 32, 4)]
    expected = weights_after(batches, 1, scale=num_ipus)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4)
    assert list(history.history)[-1] == name


def test_training_stops_when_a_callback_says_so() -> None:
    stop = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda *_: setattr(model, "stop_training", True)
    )
    with strategy().scope():
        model = compiled(sequential(), 2)
        history = model.fit(X, Y, epochs=3, callbacks=[stop], **QUIET)
    assert history.epoch == [0]
    assert int(model._train_counter) == 2


def test_programs_are_traced_once_for_data_of_one_shape() -> None:
    traced = []

    class Counting(tf.keras.layers.Layer):
        def call(self, x: Any) -> Any:
            traced.append(x)
            return x

    with strategy().scope():
        model = compiled(tf.keras.Sequential([tf.keras.Input(3), Counting()]), 8)
        model.predict(X, batch_size=4)
        before = len(traced)
        model.predict(X + 1.0, batch_size=4)
    assert len(traced) == before


def test_one_batch_at_a_time() -> None:
    with strategy().scope():
        model = compiled(sequential())
        first = model.train_on_batch(X, Y)
        assert model.test_on_batch(X, Y) < first
        np.testing.assert_allclose(model.predict_on_batch(X), model(X), rtol=1e-6)
