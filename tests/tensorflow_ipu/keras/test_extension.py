"""Models of a strategy: which class they get, and what their own classes keep."""

from __future__ import annotations

from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

import keras  # noqa: E402
from keras.engine import base_layer  # noqa: E402
from keras.ipu import extensions  # noqa: E402

from tests.tensorflow_ipu.keras.keras_models import (  # noqa: E402
    Subclassed,
    functional,
    sequential,
    strategy,
)

pytestmark = pytest.mark.usefixtures("own_pod")


@pytest.mark.parametrize(
    ("make", "extension"),
    [
        (sequential, "SequentialExtension"),
        (functional, "FunctionalExtension"),
        (Subclassed, "ModelExtension"),
    ],
)
def test_a_model_gets_the_extension_of_its_kind(make: Any, extension: str) -> None:
    with strategy().scope():
        model = make()
    assert isinstance(model, getattr(extensions, extension))
    assert type(model).__name__ == type(make()).__name__
    assert not isinstance(make(), base_layer.KerasExtension)


def test_a_strategy_without_extensions_leaves_models_alone() -> None:
    from tensorflow.python import ipu

    plain = ipu.ipu_strategy.IPUStrategy(enable_keras_extensions=False)
    with plain.scope():
        assert not isinstance(sequential(), base_layer.KerasExtension)


def test_an_override_comes_first_and_reaches_the_extension() -> None:
    class Own(Subclassed):
        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "own": 1}

    with strategy().scope():
        config = Own().get_config()
    assert config["own"] == 1
    assert config["asynchronous_callbacks"] is False


def test_a_model_of_inputs_and_outputs_may_have_a_class_of_its_own() -> None:
    class Own(keras.Model):
        pass

    with strategy().scope():
        inputs: Any = keras.Input(1)
        model = Own(inputs, inputs + 1.0)
    assert isinstance(model, extensions.FunctionalExtension)
    assert type(model).__mro__.index(Own) == 1


class Doubling(base_layer.Layer):
    """A layer whose call an extension may stand in for."""

    @base_layer.extension_delegate
    def call(self, x: Any) -> Any:
        return 2.0 * x

    @classmethod
    @base_layer.extension_delegate
    def named(cls) -> str:
        return cls.__name__


class Squaring(base_layer.KerasExtension):
    """Squares, then doubles."""

    def _call_supported(self, x: Any) -> bool:
        return True

    def _call_delegate(self: Any, x: Any) -> Any:
        return self.call(x * x, __extension_delegate=False)

    @classmethod
    def _named_delegate(cls: Any) -> str:
        return f"{cls.named(__extension_delegate=False)} extended"


def test_an_extension_of_a_layer_stands_in_for_its_methods() -> None:
    scoped = strategy()
    scoped._register_keras_extension(Doubling, base_layer.KerasExtension, Squaring)
    with scoped.scope():
        assert float(Doubling()(3.0)) == 18.0
        assert Doubling.named() == "Doubling extended"
    assert float(Doubling()(3.0)) == 6.0
    assert Doubling.named() == "Doubling"


def test_one_layer_has_one_extension() -> None:
    class Other(base_layer.KerasExtension):
        pass

    with strategy().scope():
        model = sequential()
    with pytest.raises(RuntimeError, match="one strategy only"):
        base_layer.KerasExtension.extend(model, keras.Sequential, Other)
