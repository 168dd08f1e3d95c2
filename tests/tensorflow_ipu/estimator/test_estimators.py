"""Estimators: models trained, evaluated and used in loops on the IPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import (  # noqa: E402
    ipu_estimator,
    ipu_pipeline_estimator,
    ipu_run_config,
    ipu_session_run_hooks,
)

v1 = tf.compat.v1
Modes = tf.estimator.ModeKeys


@pytest.fixture(autouse=True)
def device(own_pod: None) -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run_config(iterations: int = 1, num_ipus: int = 1, **settings: Any) -> Any:
    options = ipu.config.IPUConfig()
    options.auto_select_ipus = num_ipus
    settings = settings or {"num_replicas": num_ipus}
    return ipu_run_config.RunConfig(
        ipu_run_config.IPURunConfig(iterations, options, **settings),
        save_summary_steps=1,
    )


def numbers() -> Any:
    """(1, 1), (2, 1), (3, 1), ...: features and labels."""
    return tf.data.Dataset.range(1, 100).map(
        lambda x: (tf.cast(x, tf.float32), tf.constant(1.0))
    )


def weight_model(features: Any, labels: Any, mode: str) -> Any:
    """The weight w starts at 0; the loss is w x + y, whose gradient is x."""
    weight = v1.get_variable("w", initializer=0.0)
    loss = weight * features + labels
    optimizer = v1.train.GradientDescentOptimizer(1.0)
    if ipu.config.get_ipu_config()[0].device_config[0].auto_count > 1:
        optimizer = ipu.optimizers.CrossReplicaOptimizer(optimizer)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss)
    )


def losses_in(folder: str) -> list[float]:
    (path,) = Path(folder).glob("*tfevents*")
    events = v1.train.summary_iterator(str(path))
    values = (value for event in events for value in event.summary.value)
    return [value.simple_value for value in values if value.tag == "loss"]


def test_training_continues_from_its_checkpoint(tmp_path: Path) -> None:
    estimator = ipu_estimator.IPUEstimator(weight_model, str(tmp_path), run_config(2))
    estimator.train(numbers, steps=4)
    assert estimator.get_variable_value("global_step") == 4
    assert estimator.get_variable_value("w") == -(1 + 2 + 3 + 4)
    estimator.train(numbers, max_steps=6)  # two more, the data from its beginning
    assert estimator.get_variable_value("w") == -(10 + 1 + 2)
    estimator.train(numbers, max_steps=6)
    assert estimator.get_variable_value("global_step") == 6


def test_the_loss_is_averaged_over_a_loop(tmp_path: Path) -> None:
    estimator = ipu_estimator.IPUEstimator(weight_model, str(tmp_path), run_config(2))
    estimator.train(numbers, steps=4)
    # w = 0, -1, -3, -6 at x = 1, 2, 3, 4, so the losses are 1, -1, -8, -23.
    assert losses_in(estimator.model_dir) == [0.0, -15.5]


def test_replicas_average_their_gradients(tmp_path: Path) -> None:
    estimator = ipu_estimator.IPUEstimator(
        weight_model, str(tmp_path), run_config(1, 2)
    )
    estimator.train(numbers, steps=2)
    # The mean of 1 and 2, and then of 3 and 4.
    assert estimator.get_variable_value("w") == -5.0


def test_replicas_must_exchange_gradients(tmp_path: Path) -> None:
    def model(features: Any, labels: Any, mode: str) -> Any:
        return tf.estimator.EstimatorSpec(mode, loss=features + labels, train_op=labels)

    estimator = ipu_estimator.IPUEstimator(model, str(tmp_path), run_config(1, 2))
    with pytest.raises(ValueError, match="not a valid replicated training graph"):
        estimator.train(numbers, steps=1)


def test_a_host_call_runs_after_every_step(tmp_path: Path) -> None:
    def on_host(features: Any) -> Any:
        return v1.get_variable("seen", initializer=0.0).assign_add(features)

    def model(features: Any, labels: Any, mode: str) -> Any:
        return ipu_estimator.IPUEstimatorSpec(
            mode, loss=labels, train_op=labels, host_call=(on_host, [features])
        )

    estimator = ipu_estimator.IPUEstimator(model, str(tmp_path), run_config())
    estimator.train(numbers, steps=3)
    assert estimator.get_variable_value("seen") == 6


@pytest.mark.parametrize("on_host", [True, False])
def test_metrics_of_host_and_device(tmp_path: Path, on_host: bool) -> None:
    def model(features: Any, labels: Any, mode: str) -> Any:
        def metrics(values: Any) -> Any:
            return {"mean": v1.metrics.mean(values)}

        shown = {"eval_metrics": (metrics, {"values": features})}
        if not on_host:
            shown = {"eval_metric_ops": metrics(features)}
        return ipu_estimator.IPUEstimatorSpec(mode, loss=labels, **shown)

    estimator = ipu_estimator.IPUEstimator(model, str(tmp_path), run_config(2))
    scores = estimator.evaluate(numbers, steps=4)
    assert (scores["mean"], scores["loss"], scores["global_step"]) == (2.5, 1.0, 4)


def test_predictions_of_examples_and_batches(tmp_path: Path) -> None:
    def model(features: Any, mode: str) -> Any:
        return tf.estimator.EstimatorSpec(mode, predictions={"double": 2 * features})

    def pairs() -> Any:
        return (
            tf.data.Dataset.range(8)
            .map(lambda x: tf.cast(x, tf.int32))
            .batch(2, drop_remainder=True)
        )

    estimator = ipu_estimator.IPUEstimator(model, str(tmp_path), run_config(2))
    examples = list(estimator.predict(pairs, num_predictions=5))
    assert [example["double"] for example in examples] == [0, 2, 4, 6, 8]
    first, *_ = estimator.predict(pairs, yield_single_examples=False)
    np.testing.assert_array_equal(first["double"], [0, 2])


def test_a_model_that_counts_its_steps_is_refused(tmp_path: Path) -> None:
    def model(features: Any, labels: Any, mode: str) -> Any:
        weight = v1.get_variable("w", initializer=0.0)
        optimizer = v1.train.GradientDescentOptimizer(1.0)
        train = optimizer.minimize(weight * features, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=labels, train_op=train)

    estimator = ipu_estimator.IPUEstimator(model, str(tmp_path), run_config(2))
    with pytest.raises(ValueError, match="Illegal increment"):
        estimator.train(numbers, steps=2)


def test_batch_sizes_are_divided_among_replicas(tmp_path: Path) -> None:
    seen: list[int] = []

    def batches(params: dict[str, Any]) -> Any:
        seen.append(params["batch_size"])
        raise RuntimeError("stop here")

    config = run_config(1, 2)
    estimator = ipu_estimator.IPUEstimator(
        weight_model, str(tmp_path), config, train_batch_size=6
    )
    with pytest.raises(RuntimeError, match="stop here"):
        estimator.train(batches, steps=1)
    assert seen == [3]
    with pytest.raises(ValueError, match=r"\(got 3\) must be divisible"):
        ipu_estimator.IPUEstimator(
            weight_model, str(tmp_path), config, train_batch_size=3
        )


def test_run_configurations_must_fill_the_device() -> None:
    with pytest.raises(ValueError, match=r"4 devices .* configured with 2 devices"):
        run_config(1, 2, num_replicas=2, num_shards=2)
    with pytest.raises(ValueError, match=r"iterations_per_loop \(got 0\) must be pos"):
        ipu.ipu_run_config.IPURunConfig(iterations_per_loop=0)
    with pytest.raises(ValueError, match="requires more than one device"):
        ipu_run_config.IPURunConfig(num_shards=2)


def test_a_pipeline_is_trained_and_used(tmp_path: Path) -> None:
    def model(mode: str) -> Any:
        def first(features: Any, labels: Any) -> Any:
            return v1.get_variable("w", initializer=0.0) * features, labels

        def second(product: Any, labels: Any) -> Any:
            return product + labels

        def optimizer(loss: Any) -> Any:
            descent = v1.train.GradientDescentOptimizer(1.0)
            return ipu.pipelining_ops.OptimizerFunctionOutput(descent, loss)

        return ipu_pipeline_estimator.IPUPipelineEstimatorSpec(
            mode, [first, second], 4, optimizer_function=optimizer
        )

    config = run_config(8, 2, num_shards=2)
    estimator = ipu_pipeline_estimator.IPUPipelineEstimator(
        model, str(tmp_path), config
    )
    estimator.train(numbers, steps=8)
    assert estimator.get_variable_value("w") == -36  # 1 + 2 + ... + 8
    # The losses are 1 four times, then -10 x + 1 for x = 5 to 8: -65 + 1 on average.
    assert losses_in(estimator.model_dir) == [(1 - 64) / 2]
    predicted = estimator.predict(numbers, yield_single_examples=False)
    assert next(predicted) == -35


def test_a_hook_logs_from_inside_a_program(caplog: pytest.LogCaptureFixture) -> None:
    hook = ipu_session_run_hooks.IPULoggingTensorHook(every_n_iter=2)

    def model() -> Any:
        step = v1.get_variable("step", initializer=0, use_resource=True)
        return hook.log({"step": step.assign_add(1).value()})

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        compiled = ipu.ipu_compiler.compile(model)
    logger = v1.logging
    level = logger.get_verbosity()
    logger.set_verbosity(logger.INFO)
    try:
        with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
            for _ in range(3):
                session.run(compiled)
    finally:
        logger.set_verbosity(level)
    text = " ".join(record.getMessage() for record in caplog.records)
    assert [f"step = {step}" in text for step in (1, 2, 3)] == [True, False, True]


def test_names_of_the_package_that_had_estimators() -> None:
    from tensorflow.python.estimator import estimator_lib
    from tensorflow_estimator.python.estimator import model_fn

    assert model_fn.EstimatorSpec is estimator_lib.EstimatorSpec
    assert Modes.PREDICT == "infer"


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="no settings"):
        tf.estimator.RunConfig().replace(model_directory="elsewhere")
    with pytest.raises(AttributeError, match="model_directory"):
        _ = tf.estimator.RunConfig().model_directory


def test_a_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:1"]}}')
    with pytest.raises(NotImplementedError, match="cluster"):
        ipu_run_config.RunConfig()
