"""Where Keras tells `keras.ipu` what it does: everything changed inside Keras.

`apply()` runs once, when `keras.ipu` is imported. Each change is one small function
that says why it must be; models made outside an `IPUStrategy` behave as before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.util import tf_decorator
from tf_keras.src.engine import base_layer, functional, node, sequential, training
from tf_keras.src.mixed_precision import loss_scale_optimizer
from tf_keras.src.saving.legacy.saved_model import load as saved_model_load

from tensorflow_ipu._types import Tensors

from . import _tags
from .extensions._extension import KerasExtension
from .extensions.pipeline_stage_assignment import mark_with_stage

__all__ = ["apply"]

_APPLIED = "_popple_hooks"


def apply() -> None:
    """Change Keras; a second call finds nothing left to do."""
    if hasattr(base_layer.Layer, _APPLIED):
        return
    setattr(base_layer.Layer, _APPLIED, True)
    _after(base_layer.Layer, "__init__", _extend_and_mark)
    _after(node.Node, "__init__", mark_with_stage)
    _tag_calls()
    for cls in (training.Model, sequential.Sequential):
        _restore_options_from_config(cls)
    _restore_options_from_saved_model()
    _scale_losses_in_ipu_strategies()


def _after(cls: type, name: str, then: Callable[[Any], None]) -> None:
    original = getattr(cls, name)

    def method(self, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        then(self)

    # Keras reads the signatures of constructors.
    setattr(cls, name, tf_decorator.make_decorator(original, method))


def _extend_and_mark(layer: tf.keras.layers.Layer) -> None:
    # A model gets its methods when it is made, and the class it was made with may
    # still change before Layer's own constructor runs, in no other place.
    extend = getattr(tf.distribute.get_strategy(), "_patch_keras_extension", None)
    if extend is not None:
        extend(layer)
    mark_with_stage(layer)


def _tag_calls() -> None:
    # Only the call of a layer knows which operations belong to it.
    original = base_layer.Layer.__call__

    @functools.wraps(original)
    def call(self, *args: Any, **kwargs: Any) -> Tensors:
        return _tags.call_tagged(self, lambda: original(self, *args, **kwargs))

    base_layer.Layer.__call__ = call


def _restore_options_from_config(cls: Any) -> None:
    # The class a model is restored with is Keras' own or the user's: its method runs
    # before there is a model that could know better.
    original = cls.from_config.__func__

    def from_config(
        cls: Any, config: Any, custom_objects: dict[str, Any] | None = None
    ) -> tf.keras.Model:
        if _is_extended_subclass(cls):
            model = _new_instance(cls)
        else:
            model = original(cls, config, custom_objects)
        _restore_options(model, config)
        return model

    cls.from_config = classmethod(from_config)


def _is_extended_subclass(cls: Any) -> bool:
    """Whether `cls` is a user's subclass of `Model` that the strategy extends."""
    strategy = tf.distribute.get_strategy()
    if not getattr(strategy, "_enable_keras_extensions", False):
        return False
    return cls is not training.Model and not issubclass(cls, functional.Functional)


def _new_instance(cls: Any) -> tf.keras.Model:
    try:
        return cls()
    except TypeError as error:
        _LOADING.failure = NotImplementedError(
            f"A model of class {cls.__name__} cannot be made again without the "
            "arguments of its constructor. Subclassed models which require parameters "
            "in their constructors must override the `from_config` function to be "
            "saved and loaded."
        )
        raise _LOADING.failure from error


class _Loading(threading.local):
    """Why a model could not be made again. Keras goes on with a makeshift one."""

    failure: NotImplementedError | None = None


_LOADING = _Loading()


def _restore_options_from_saved_model() -> None:
    # A SavedModel is put together from its layers, past `from_config`.
    original = saved_model_load.load

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> tf.keras.Model:
        _LOADING.failure = None
        model = original(*args, **kwargs)
        if _LOADING.failure is not None:
            raise _LOADING.failure
        metadata = getattr(model, "_serialized_attributes", {}).get("metadata", {})
        config = metadata.get("model_config", {}).get("config", {})
        _restore_options(model, config)
        return model

    saved_model_load.load = load


def _scale_losses_in_ipu_strategies() -> None:
    # Keras has a list of the strategies whose losses it scales.
    stock = loss_scale_optimizer.strategy_supports_loss_scaling

    def strategy_supports_loss_scaling() -> bool:
        strategy = tf.distribute.get_strategy()
        return getattr(strategy, "supports_loss_scaling", False) or stock()

    loss_scale_optimizer.strategy_supports_loss_scaling = strategy_supports_loss_scaling


def _restore_options(model: tf.keras.Model, config: Any) -> None:
    if isinstance(model, KerasExtension) and isinstance(config, dict):
        restore = getattr(model, "_deserialize_from_config_delegate", None)
        if restore is not None:
            restore(config)
