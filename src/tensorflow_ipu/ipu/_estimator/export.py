"""The names of `tf.estimator.export`: what an exported model takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf
from tensorflow.python.saved_model.model_utils import export_output

__all__ = [
    "ClassificationOutput",
    "EvalOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "ServingInputReceiver",
    "SupervisedInputReceiver",
    "TensorServingInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
]

v1 = tf.compat.v1

ClassificationOutput = export_output.ClassificationOutput
EvalOutput = export_output.EvalOutput
ExportOutput = export_output.ExportOutput
PredictOutput = export_output.PredictOutput
RegressionOutput = export_output.RegressionOutput

_EXAMPLES = "examples"


class ServingInputReceiver(NamedTuple):
    """Features for a model, and the placeholders that they are computed from.

    Alternatives are other placeholders, by the name of the signature to add.
    """

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Mapping[str, Any] | None = None


class TensorServingInputReceiver(ServingInputReceiver):
    """A receiver whose features are one tensor and no dictionary."""


class SupervisedInputReceiver(NamedTuple):
    """Features and labels for training or evaluation, and their placeholders."""

    features: Any
    labels: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Mapping[str, Any] | None = None


Receiver = ServingInputReceiver | SupervisedInputReceiver


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a receiver of tensors like these, fed as they are."""
    signatures = {
        name: (tensor.dtype, [default_batch_size, *tensor.shape.as_list()[1:]])
        for name, tensor in features.items()
    }

    def receive() -> ServingInputReceiver:
        places = {
            name: v1.placeholder(dtype, shape, name=name)
            for name, (dtype, shape) in signatures.items()
        }
        return ServingInputReceiver(places, places)

    return receive


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a receiver of serialised `tf.Example` messages."""

    def receive() -> ServingInputReceiver:
        serialized = v1.placeholder(
            tf.string, [default_batch_size], name="input_example_tensor"
        )
        features = tf.io.parse_example(serialized, dict(feature_spec))
        return ServingInputReceiver(features, {_EXAMPLES: serialized})

    return receive
