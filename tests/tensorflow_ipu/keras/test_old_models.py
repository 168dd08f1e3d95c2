"""Models of older releases, `ipu.keras.Model` and the like."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from keras.ipu import PipelineStage  # noqa: E402
from keras.ipu._old_steps import Shape, epoch_of, in_pairs  # noqa: E402
from tensorflow.python import ipu  # noqa: E402

from tests.tensorflow_ipu.keras.keras_models import (  # noqa: E402
    RATE,
    X,
    Y,
    assert_weights,
    batches_of,
    dense,
    strategy,
    weights_after,
)

pytestmark = [
    pytest.mark.usefixtures("own_pod"),
    pytest.mark.filterwarnings("ignore:ipu.keras:DeprecationWarning"),
]


def fitted(model: Any) -> Any:
    model.compile(tf.keras.optimizers.SGD(RATE), "mse")
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4, drop_remainder=True)
    model.fit(data, verbose=0)
    return model


def layers_in_scopes(inputs: Any) -> Any:
    with PipelineStage(0):
        hidden = dense(2)(inputs)
    with PipelineStage(1):
        return dense(1)(hidden)


def test_a_sequence_accumulates_over_all_steps_of_the_data() -> None:
    with strategy().scope():
        layers = [dense(2), dense(1)]
        model = fitted(ipu.keras.Sequential(layers, gradient_accumulation_count=4))
    assert int(model._steps_per_execution) == 8
    assert_weights(model, weights_after(batches_of(4), 4))


def test_a_model_of_inputs_and_outputs_accumulates() -> None:
    with strategy().scope():
        inputs = tf.keras.Input(3)
        outputs = dense(1)(dense(2)(inputs))
        model = ipu.keras.Model(inputs, outputs, accumulation_count=2)
        fitted(model)
    assert_weights(model, weights_after(batches_of(4), 2))


def test_a_pipeline_of_scopes_or_of_lists() -> None:
    with strategy(2).scope():
        inputs = tf.keras.Input(3)
        outputs = layers_in_scopes(inputs)
        scoped = ipu.keras.PipelineModel(inputs, outputs, pipeline_depth=4)
        stages = [[dense(2)], [dense(1)]]
        listed = ipu.keras.SequentialPipelineModel(stages, 4)
        for model in (scoped, listed):
            assert_weights(fitted(model), weights_after(batches_of(4), 4))


def test_serialised_batches_accumulate_too() -> None:
    with strategy().scope():
        stages = [[dense(2)], [dense(1)]]
        model = ipu.keras.PipelineSequential(
            stages, 2, device_mapping=[0, 0], batch_serialization_iterations=2
        )
        assert_weights(fitted(model), weights_after(batches_of(4), 4))


@pytest.mark.parametrize(
    ("error", "words", "wrong"),
    [
        (ValueError, "`repeat_count`", {"repeat_count": 2}),
        (NotImplementedError, "single IPU", {"batch_serialization_iterations": 2}),
        (
            NotImplementedError,
            "`Sequential` schedule",
            {
                "batch_serialization_iterations": 2,
                "pipeline_schedule": ipu.pipelining_ops.PipelineSchedule.Grouped,
            },
        ),
    ],
)
def test_pipelines_say_what_they_cannot(
    error: type[Exception], words: str, wrong: dict[str, Any]
) -> None:
    with strategy(2).scope(), pytest.raises(error, match=words):
        ipu.keras.PipelineSequential([[dense(2)], [dense(1)]], 4, **wrong)


def test_steps_and_depth_may_be_said_in_fit() -> None:
    with strategy().scope():
        model = ipu.keras.Sequential([dense(1)])
        model.compile("sgd", "mse")
        model.fit(X, Y, batch_size=4, steps_per_run=2, prefetch_depth=1, verbose=0)
    assert int(model._steps_per_execution) == 2
    assert model._infeed_kwargs == {"prefetch_depth": 1}


def test_old_models_warn_and_run_in_a_strategy_only() -> None:
    with pytest.warns(DeprecationWarning, match="older releases"):
        model = ipu.keras.Sequential([dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="can only be used on an IPU device"):
        model.fit(X, Y, batch_size=4)
    with pytest.raises(AttributeError, match="Modle"):
        _ = ipu.keras.Modle


SHAPE = Shape(accumulation=4, replicas=2)


def batches(count: int) -> Any:
    return tf.data.Dataset.range(count)


def test_steps_are_updates_over_all_replicas() -> None:
    # 6 steps of 4 batches are 24; on each replica 3 steps, one of which runs at a time.
    epoch = epoch_of(batches(64), SHAPE, 6, 1, is_array=False)
    assert (epoch.num_batches, epoch.batches_at_a_time) == (24, 4)
    assert int(epoch.data.cardinality()) == 24
    whole = epoch_of(batches(64), SHAPE, None, None, is_array=False)
    assert (whole.num_batches, whole.batches_at_a_time) == (64, 32)


def test_what_is_left_of_arrays_is_left_out() -> None:
    epoch = epoch_of(batches(21), SHAPE, None, None, is_array=True)
    assert epoch.num_batches == 16  # 21 less what 4 batches times 2 replicas leave
    again = epoch_of(batches(21), SHAPE, 8, None, is_array=True)
    assert again.num_batches == 32  # arrays begin again


@pytest.mark.parametrize(
    ("size", "steps", "per_run", "words"),
    [
        (21, None, None, "must be a multiple of 8"),
        (8, 4, None, "has 8: repeat"),
        (64, 5, None, "5 steps do not come out even on 2"),
        (64, 6, 2, "must divide the 3 steps"),
        (-1, None, None, "is not known"),
    ],
)
def test_steps_that_do_not_fit_are_refused(
    size: int, steps: int | None, per_run: int | None, words: str
) -> None:
    data = batches(size) if size > 0 else batches(8).repeat()
    with pytest.raises(ValueError, match=words):
        epoch_of(data, SHAPE, steps, per_run, is_array=False)


def test_elements_may_be_nested_or_flat() -> None:
    flat = tf.data.Dataset.from_tensors((1, 2, 3))
    nested = tf.data.Dataset.from_tensors(((1, 2), 3))
    for data in (flat, nested):
        spec = in_pairs(data, 2, 1).element_spec
        assert [len(tf.nest.flatten(part)) for part in spec] == [2, 1]
    with pytest.raises(ValueError, match="must have 2 tensors, inputs only"):
        in_pairs(flat, 2, 0)


def test_layers_that_moved_are_found() -> None:
    from ipu_tensorflow_addons.keras import layers

    assert ipu.keras.layers.LSTM is layers.LSTM
    with pytest.raises(AttributeError):
        _ = ipu.keras.layers.Lstm
