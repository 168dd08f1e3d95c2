"""Trained models of estimators, written for serving and loaded again."""

from __future__ import annotations

import os
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
)

v1 = tf.compat.v1
Modes = tf.estimator.ModeKeys
export = tf.estimator.export


@pytest.fixture(autouse=True)
def device(own_pod: None) -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run_config(iterations: int = 2, num_shards: int = 1) -> Any:
    options = ipu.config.IPUConfig()
    options.auto_select_ipus = num_shards
    settings = ipu_run_config.IPURunConfig(iterations, options, num_shards=num_shards)
    return ipu_run_config.RunConfig(settings)


def pairs() -> Any:
    """x = 1 and y = 1, again and again, in batches of one."""
    element = ({"x": tf.ones([1])}, tf.ones([1]))
    return tf.data.Dataset.from_tensors(element).repeat()


def weight_model(features: Any, labels: Any, mode: str) -> Any:
    """w x, where w falls by one in every step of training."""
    weight = v1.get_variable("w", initializer=10.0)
    result = weight * features["x"]
    if mode == Modes.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": result})
    loss = tf.reduce_mean(result * labels)
    train = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def trained(folder: Path) -> Any:
    """An estimator whose weight is eight."""
    estimator = ipu_estimator.IPUEstimator(weight_model, str(folder), run_config())
    return estimator.train(pairs, steps=2)


def receive() -> Any:
    place = v1.placeholder(tf.float32, [None], name="x")
    return export.ServingInputReceiver({"x": place}, {"x": place})


def served(path: bytes, **inputs: Any) -> Any:
    with tf.Graph().as_default(), v1.Session() as session:
        graph = v1.saved_model.load(session, ["serve"], os.fsdecode(path))
        signature = graph.signature_def["serving_default"]
        fed = {signature.inputs[key].name: value for key, value in inputs.items()}
        wanted = {key: output.name for key, output in signature.outputs.items()}
        return session.run(wanted, fed)


def test_a_trained_model_is_served(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("one two")
    path = trained(tmp_path / "model").export_saved_model(
        str(tmp_path / "out"), receive, {"lists/words": str(tmp_path / "words")}
    )
    assert served(path, x=[1.0, 2.0])["y"].tolist() == [8.0, 16.0]
    copied = Path(os.fsdecode(path), "assets.extra", "lists", "words")
    assert copied.read_text() == "one two"
    assert os.listdir(tmp_path / "out") == [Path(os.fsdecode(path)).name]


def test_examples_are_parsed(tmp_path: Path) -> None:
    spec = {"x": tf.io.FixedLenFeature([], tf.float32)}
    parse = export.build_parsing_serving_input_receiver_fn(spec)
    path = trained(tmp_path / "model").export_saved_model(str(tmp_path / "out"), parse)
    number = tf.train.Feature(float_list=tf.train.FloatList(value=[3.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": number}))
    found = served(path, examples=[example.SerializeToString()])
    assert found["y"].tolist() == [24.0]


def test_raw_tensors_are_received_as_they_are(tmp_path: Path) -> None:
    like = {"x": tf.zeros([7])}
    raw = export.build_raw_serving_input_receiver_fn(like)
    path = trained(tmp_path / "model").export_saved_model(str(tmp_path / "out"), raw)
    assert served(path, x=np.float32([0.5]))["y"].tolist() == [4.0]


def test_several_modes_share_the_variables(tmp_path: Path) -> None:
    def receive_labels() -> Any:
        x, y = (v1.placeholder(tf.float32, [None], name=name) for name in "xy")
        return export.SupervisedInputReceiver({"x": x}, y, {"x": x, "y": y})

    path = trained(tmp_path / "model").experimental_export_all_saved_models(
        str(tmp_path / "out"), {Modes.PREDICT: receive, Modes.EVAL: receive_labels}
    )
    with v1.Session() as session:
        graph = v1.saved_model.load(session, ["eval"], os.fsdecode(path))
        loss = graph.signature_def["eval"].outputs["loss"].name
        assert session.run(loss, {"x:0": [2.0], "y:0": [3.0]}) == 8 * 2 * 3


def test_an_untrained_model_is_not_exported(tmp_path: Path) -> None:
    estimator = ipu_estimator.IPUEstimator(weight_model, str(tmp_path), run_config())
    with pytest.raises(ValueError, match="train it first"):
        estimator.export_saved_model(str(tmp_path / "out"), receive)


def test_a_pipeline_is_served(tmp_path: Path) -> None:
    def first(x: Any, y: Any = None) -> Any:
        product = v1.get_variable("w", initializer=10.0) * x
        return product if y is None else (product, y)

    def model(mode: str) -> Any:
        last = {"train": lambda product, y: tf.reduce_mean(product * y)}
        sgd = v1.train.GradientDescentOptimizer(1.0)
        return ipu_pipeline_estimator.IPUPipelineEstimatorSpec(
            mode,
            computational_stages=[first, last.get(mode, lambda product: product + 1.0)],
            gradient_accumulation_count=4,
            optimizer_function=lambda loss: ipu.pipelining_ops.OptimizerFunctionOutput(
                sgd, loss
            ),
        )

    estimator = ipu_pipeline_estimator.IPUPipelineEstimator(
        model, str(tmp_path / "model"), run_config(4, num_shards=2)
    )
    estimator.train(
        lambda: pairs().map(lambda features, y: (features["x"], y)), steps=4
    )

    def receive_tensor() -> Any:
        x = v1.placeholder(tf.float32, [None], name="x")
        return export.TensorServingInputReceiver(x, {"x": x})

    path = estimator.export_saved_model(str(tmp_path / "out"), receive_tensor)
    assert served(path, x=[2.0])["output"].tolist() == [13.0]  # (10 - 4) 2 + 1
    with pytest.raises(NotImplementedError, match="for prediction only"):
        estimator.export_saved_model("out", receive_tensor, experimental_mode="eval")
