"""Layers in pipeline stages: scopes, assignments, their rules and their table."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

import keras  # noqa: E402
from keras.ipu import (  # noqa: E402
    ModelLayerPipelineStageAssignment,
    PipelineStage,
    SequentialLayerPipelineStageAssignment,
)

from tests.tensorflow_ipu.keras.keras_models import (  # noqa: E402
    Subclassed,
    dense,
    functional,
    sequential,
    strategy,
)

pytestmark = pytest.mark.usefixtures("own_pod")


def stages_of(assignments: list[Any]) -> list[Any]:
    return [
        stages_of(each.pipeline_stage_assignments)
        if each.is_nested_model
        else each.pipeline_stage
        for each in assignments
    ]


def assign(model: Any, stages: list[int]) -> list[Any]:
    assignments = model.get_pipeline_stage_assignment()
    for assignment, stage in zip(assignments, stages, strict=True):
        assignment.pipeline_stage = stage
    return assignments


def test_a_scope_needs_a_strategy_and_stands_alone() -> None:
    with pytest.raises(RuntimeError, match="within an IPUStrategy"), PipelineStage(0):
        pass
    with strategy().scope():
        with pytest.raises(ValueError, match="-1 is not a valid"), PipelineStage(-1):
            pass
        nested = pytest.raises(RuntimeError, match="must not be nested")
        with PipelineStage(0), nested, PipelineStage(1):
            pass
        with PipelineStage(1):
            assert dense(1)._pipeline_stage == 1


def test_the_scope_of_a_call_goes_before_that_of_the_layer() -> None:
    with strategy().scope():
        inputs = keras.Input(3)
        with PipelineStage(0):
            layer = dense(3)
        x = layer(inputs)
        with PipelineStage(1):
            x = layer(x)
        model = keras.Model(inputs, x)
    assert stages_of(model.get_pipeline_stage_assignment()) == [0, 1]
    assert model._is_pipelined()


def test_one_layer_in_a_stage_asks_for_all() -> None:
    with strategy().scope():
        inputs = keras.Input(3)
        with PipelineStage(0):
            x = dense(2)(inputs)
        x = dense(1, name="forgotten")(x)
        with pytest.raises(ValueError, match="However, forgotten has not"):
            keras.Model(inputs, x)


def test_stages_are_set_and_taken_back() -> None:
    with strategy().scope():
        model = functional()
        model.set_pipeline_stage_assignment(assign(model, [0, 1]))
    assert stages_of(model.get_pipeline_stage_assignment()) == [0, 1]
    assert model._get_shard_count() == 2
    model.reset_pipeline_stage_assignment()
    assert stages_of(model.get_pipeline_stage_assignment()) == [None, None]


def test_a_list_must_be_an_assignment_of_the_model() -> None:
    with strategy().scope():
        model = functional()
    good = assign(model, [0, 1])
    other = SequentialLayerPipelineStageAssignment(model.layers[1], 0)
    for bad, match in (
        (good[:1], r"\(1\) does not match .* \(2\)"),
        (good[::-1], "does not match the post-order"),
        ([other, good[1]], "must be an instance of `FunctionalLayer"),
        (assign(model, [0, None]), "has not been assigned a pipeline stage"),
        (tuple(good), "must be a list"),
        (assign(model, [1, 0]), "in pipeline stage 0 has a dependency"),
    ):
        with pytest.raises(ValueError, match=match):
            model.set_pipeline_stage_assignment(bad)


def test_a_sequential_model_takes_numbers_that_grow_by_one() -> None:
    with strategy().scope():
        model = sequential()
    model.set_pipeline_stage_assignment([0, 1])
    assert stages_of(model.get_pipeline_stage_assignment()) == [0, 1]
    for stages, match in (([1, 1], "0th pipeline stage"), ([0, 2], "to the next")):
        with pytest.raises(ValueError, match=match):
            model.set_pipeline_stage_assignment(stages)
    with pytest.raises(ValueError, match="All elements"):
        model.set_pipeline_stage_assignment([0.0, 1.0])


def test_a_sequential_model_that_changes_has_no_valid_stages() -> None:
    with strategy().scope():
        model = sequential()
        model.set_pipeline_stage_assignment([0, 1])
        assert model._pipeline_stage_assignment_valid
        model.add(dense(1))
    assert not model._pipeline_stage_assignment_valid


def test_a_subclass_has_stages_when_it_is_built() -> None:
    with strategy().scope():
        model = Subclassed()
        with pytest.raises(RuntimeError, match="has not been built yet"):
            model.get_pipeline_stage_assignment()
        model.build((2, 3))
        assignments = assign(model, [0, 1])
        model.set_pipeline_stage_assignment(assignments)
    assert isinstance(assignments[0], ModelLayerPipelineStageAssignment)
    assert assignments[1].inbound_layers == [model.first]
    assert str(assignments[1]).endswith("to pipeline stage: 1")


def test_a_subclass_may_be_built_from_inputs_of_any_type() -> None:
    class Table(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.rows = keras.layers.Lambda(lambda x: tf.gather(tf.eye(4), x))

        def call(self, inputs: Any) -> Any:
            return self.rows(inputs)

    with strategy().scope():
        with pytest.raises(ValueError, match="do not support float type inputs"):
            Table().build((2, 3))
        model = Table()
        model.build(keras.Input(3, dtype=tf.int32, batch_size=2))
    assert model._get_network().output_shape == (2, 3, 4)


def test_models_inside_have_stages_of_their_own() -> None:
    with strategy().scope():
        inner = functional()
        inputs = keras.Input(3)
        model = keras.Model(inputs, dense(1)(inner(inputs)))
        nested, last = model.get_pipeline_stage_assignment()
        for stage, each in enumerate(nested.pipeline_stage_assignments):
            each.pipeline_stage = stage
        last.pipeline_stage = 2
        model.set_pipeline_stage_assignment([nested, last])
        plan = model._stage_plan()
    assert stages_of(model.get_pipeline_stage_assignment()) == [[0, 1], 2]
    assert [len(plan.of_stage(stage)) for stage in range(3)] == [1, 1, 1]
    assert [len(plan.passed_on(stage)) for stage in range(2)] == [1, 1]


def test_a_value_travels_through_the_stages_that_do_not_need_it() -> None:
    with strategy().scope():
        inputs = keras.Input(3)
        with PipelineStage(0):
            first = dense(2)(inputs)
        with PipelineStage(1):
            second = dense(2)(first)
        with PipelineStage(2):
            total = keras.layers.Add()([first, second])
        plan = keras.Model(inputs, total)._stage_plan()
    # After stage 0 only `first` is needed, after stage 1 both terms of the sum.
    assert [len(plan.passed_on(stage)) for stage in range(2)] == [1, 2]


def test_every_stage_has_a_layer() -> None:
    with strategy().scope():
        model = functional()
        model.set_pipeline_stage_assignment(assign(model, [0, 2]))
        with pytest.raises(RuntimeError, match=r"stages \[1\] had no assignments"):
            model._stage_plan()


def test_a_table_shows_layers_and_stages() -> None:
    with strategy().scope():
        model = keras.Sequential([dense(2, name="a"), dense(1, name="b")], name="m")
    model.set_pipeline_stage_assignment([0, 1])
    lines: list[str] = []
    model.print_pipeline_stage_assignment_summary(20, lines.append)
    assert lines == [
        'Model: "m"',
        "_" * 20,
        "Layer (ty Pipeline S",
        "=" * 20,
        "a (Dense) 0         ",
        "_" * 20,
        "b (Dense) 1         ",
        "=" * 20,
    ]


def test_a_table_shows_what_a_call_takes() -> None:
    with strategy().scope():
        left, right = keras.Input(1, name="left"), keras.Input(1, name="right")
        added = keras.layers.Add(name="sum")([left, right])
        model = keras.Model([left, right], added)
    lines: list[str] = []
    model.print_pipeline_stage_assignment_summary(40, lines.append)
    assert [line.split() for line in lines[4:6]] == [
        ["sum", "(Add)", "(0)", "left", "None"],
        ["right"],
    ]
