"""The options of a model in a strategy: checks, and what a saved model keeps."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from keras.ipu import ReplicatedMetricReductionMethod  # noqa: E402
from keras.ipu.extensions._options import Options  # noqa: E402
from tensorflow.python.ipu import gradient_accumulation as ga  # noqa: E402

from tests.tensorflow_ipu.keras.keras_models import sequential, strategy  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")


@pytest.mark.parametrize(
    "method", ["mean", "MEAN", ReplicatedMetricReductionMethod.MEAN]
)
def test_a_reduction_is_known_by_name_or_member(method: Any) -> None:
    parsed = ReplicatedMetricReductionMethod.parse(method)
    assert parsed is ReplicatedMetricReductionMethod.MEAN


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ValueError, match="NONE, LIST, SUM, MEAN"):
        ReplicatedMetricReductionMethod.parse("max")


@pytest.mark.parametrize("steps", [0, -1, 2.0])
def test_accumulation_takes_a_positive_number_of_steps(steps: Any) -> None:
    with pytest.raises(ValueError, match="to be a positive integer"):
        Options().with_accumulation(steps, "sum", False, {})
    with pytest.raises(ValueError, match="to be a positive integer"):
        Options().with_pipelining(steps, None, None, "sum", {})


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("gradient_accumulation_count", "gradient_accumulation_steps_per_replica"),
        ("infeed_queue", "automatically set by Keras"),
        ("outfeed_mask", "not compatible with Keras"),
        ("experimental_normalize_gradients", "reduction_method"),
    ],
)
def test_arguments_that_keras_sets_are_refused(key: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        Options().with_pipelining(None, None, None, "sum", {key: 1})


@pytest.mark.parametrize("mapping", [[0.0], (0, 1), "01"])
def test_devices_are_a_list_of_integers(mapping: Any) -> None:
    with pytest.raises(ValueError, match="list of integers"):
        Options().with_pipelining(None, mapping, None, "sum", {})


def test_arguments_of_feeds_that_keras_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="Found `dataset`"):
        Options().with_infeed({"dataset": None})
    with pytest.raises(ValueError, match="Found `outfeed_mode`"):
        Options().with_outfeed({"outfeed_mode": None})
    with pytest.raises(ValueError, match="Found `opt`"):
        Options().with_accumulation(None, "sum", False, {"opt": None})


def test_what_is_not_given_stays() -> None:
    first = Options().with_pipelining(4, [0, 1], True, "mean", {})
    second = first.with_pipelining(None, None, None, "mean", {})
    assert second == first


def test_options_survive_a_configuration_but_for_what_is_handed_on() -> None:
    options = (
        Options()
        .with_pipelining(4, [1, 0], True, "mean", {"offload_weights": True})
        .with_accumulation(2, "running_mean", True, {"dtype": "float32"})
        .with_replication("list")
        .with_callbacks(True)
        .with_infeed({"prefetch_depth": 2})
    )
    restored = Options.from_config(options.to_config())
    assert restored.gradient_accumulation_reduction_method is (
        ga.GradientAccumulationReductionMethod.RUNNING_MEAN
    )
    assert restored.to_config() == options.to_config()
    assert restored.pipelining_kwargs == {}
    assert Options.from_config({}) == Options()


def test_setting_an_option_forgets_traced_programs() -> None:
    with strategy().scope():
        model = sequential()
    model._ipu_programs["traced"] = object()
    model.set_infeed_queue_options(prefetch_depth=2)
    assert model._ipu_programs == {}
    assert model._infeed_kwargs == {"prefetch_depth": 2}
