"""Models of a strategy saved and loaded: options, stages and weights come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tests.tensorflow_ipu.keras.keras_models import (  # noqa: E402
    Subclassed,
    X,
    Y,
    compiled,
    dense,
    functional,
    sequential,
    strategy,
)

pytestmark = pytest.mark.usefixtures("own_pod")


def staged(model: Any) -> Any:
    model.build((4, 3))
    assignments = model.get_pipeline_stage_assignment()
    for stage, assignment in enumerate(assignments):
        assignment.pipeline_stage = stage
    model.set_pipeline_stage_assignment(assignments)
    model.set_pipelining_options(4, [1, 0], True, "mean")
    return model


def stages_of(model: Any) -> list[int]:
    return [each.pipeline_stage for each in model.get_pipeline_stage_assignment()]


@pytest.mark.parametrize("make", [sequential, functional, Subclassed])
def test_a_saved_model_keeps_options_and_stages(make: Any, tmp_path: Path) -> None:
    with strategy(2).scope():
        model = compiled(staged(make()), 4)
        model.fit(X, Y, batch_size=4, verbose=0)
        model.save(tmp_path / "model")
        known = {"Subclassed": Subclassed}
        loaded = tf.keras.models.load_model(tmp_path / "model", custom_objects=known)
        # Keras does not save the number of steps of an execution.
        compiled(loaded, 4)
        outputs = loaded.predict(X, batch_size=4)
    assert loaded._ipu_options == model._ipu_options
    assert stages_of(loaded) == [0, 1]
    np.testing.assert_allclose(outputs, model(X), rtol=1e-5)


def test_a_configuration_of_code_makes_the_model_of_its_own_layers() -> None:
    with strategy(2).scope():
        again = Subclassed.from_config(staged(Subclassed()).get_config())
        compiled(again, 4).fit(X, Y, batch_size=4, verbose=0)
        outputs = again.predict(X, batch_size=4)
    assert stages_of(again) == [0, 1]
    np.testing.assert_allclose(outputs, again(X), rtol=1e-5)


def test_code_loaded_without_its_class_can_be_called(tmp_path: Path) -> None:
    with strategy().scope():
        model = compiled(staged(Subclassed()), 4)
        model.save(tmp_path / "model")
        loaded = tf.keras.models.load_model(tmp_path / "model")
    np.testing.assert_allclose(loaded(X[:4]), model(X[:4]), rtol=1e-5)


@pytest.mark.parametrize("make", [sequential, functional])
def test_a_configuration_makes_the_model_again(make: Any) -> None:
    with strategy().scope():
        model = staged(make())
        model.set_asynchronous_callbacks(True)
        again = tf.keras.models.model_from_json(model.to_json())
        copied = type(model).from_config(model.get_config())
    for restored in (again, copied):
        assert restored._ipu_options == model._ipu_options
        assert stages_of(restored) == [0, 1]


def test_outside_a_strategy_options_are_left_out() -> None:
    with strategy().scope():
        config = staged(functional()).get_config()
    plain = tf.keras.Model.from_config(config)
    assert not hasattr(plain, "_ipu_options")
    assert plain(X).shape == (32, 1)


def test_stages_of_models_inside_are_kept() -> None:
    with strategy().scope():
        inputs = tf.keras.Input(3)
        model = tf.keras.Model(inputs, dense(1)(staged(functional())(inputs)))
        nested, last = model.get_pipeline_stage_assignment()
        last.pipeline_stage = 2
        model.set_pipeline_stage_assignment([nested, last])
        again = type(model).from_config(model.get_config())
    inner, outer = again.get_pipeline_stage_assignment()
    assert [each.pipeline_stage for each in inner.pipeline_stage_assignments] == [0, 1]
    assert outer.pipeline_stage == 2


def test_a_get_config_of_ones_own_must_call_the_one_above(tmp_path: Path) -> None:
    class Own(Subclassed):
        def get_config(self) -> dict[str, Any]:
            return {}

    with strategy().scope():
        model = compiled(Own())
        model.predict(X, batch_size=4)
        model.save(tmp_path / "model")
        with pytest.raises(RuntimeError, match=r"super\(\).get_config\(\)"):
            tf.keras.models.load_model(tmp_path / "model", {"Own": Own})


def test_a_constructor_with_arguments_needs_a_from_config(tmp_path: Path) -> None:
    class Own(tf.keras.Model):
        def __init__(self, units: int) -> None:
            super().__init__()
            self.layer = dense(units)

        def call(self, inputs: Any) -> Any:
            return self.layer(inputs)

    with strategy().scope():
        model = Own(2)
        model.build((4, 3))
        model.save(tmp_path / "model")
        with pytest.raises(
            NotImplementedError, match="must override the `from_config`"
        ):
            tf.keras.models.load_model(tmp_path / "model", {"Own": Own})
