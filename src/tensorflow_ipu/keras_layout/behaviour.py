"""What tf_keras does otherwise than Keras 2.6 did, set right: one function for each.

In: the loaded tf_keras. Out: its own functions and classes, changed in place.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tensorflow_ipu import _notices

if TYPE_CHECKING:  # TensorFlow is not loaded yet
    from tensorflow_ipu._types import Tensors

OPTIMIZERS = "tf_keras.src.optimizers"

# Class, module of today's, module of the one of 2.6 (an OptimizerV2).
OPTIMIZER_CLASSES = (
    ("Adadelta", "adadelta", "legacy.adadelta"),
    ("Adagrad", "adagrad", "legacy.adagrad"),
    ("Adam", "adam", "legacy.adam"),
    ("Adamax", "adamax", "legacy.adamax"),
    ("Ftrl", "ftrl", "legacy.ftrl"),
    ("Nadam", "nadam", "legacy.nadam"),
    ("RMSprop", "rmsprop", "legacy.rmsprop"),
    ("SGD", "sgd", "legacy.gradient_descent"),
)


def pairs_of_optimizers() -> list[tuple[Any, Any]]:
    """Every optimiser class of today and the one of 2.6 with the same name."""
    pairs = [
        (find_class(today, name), find_class(former, name))
        for name, today, former in OPTIMIZER_CLASSES
    ]
    base = find_class("legacy.optimizer_v2", "OptimizerV2")
    return [*pairs, (find_class("optimizer", "Optimizer"), base)]


def find_class(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"{OPTIMIZERS}.{module}"), name)


def show_optimizers_of_2_6(face: ModuleType) -> None:
    """Put OptimizerV2 behind the public names of a module of optimisers."""
    # Programs for the IPU rely on it: get_gradients, slots, `Adam(decay=...)`.
    for today, former in pairs_of_optimizers():
        shown = [name for name, value in vars(face).items() if value is today]
        for name in shown:
            setattr(face, name, former)


def read_names_as_optimizers_of_2_6() -> None:
    """Let `compile("adam")`, and an empty configuration, mean an OptimizerV2."""
    stock = importlib.import_module(OPTIMIZERS)
    for name in ("get", "deserialize"):
        replace_everywhere(name, getattr(stock, name), prefer_v2(getattr(stock, name)))


def replace_everywhere(name: str, stock: Any, ours: Any) -> None:
    """Replace a function of tf_keras in all modules that re-export it."""
    for module in list(sys.modules.values()):
        holds = getattr(module, "__dict__", {}).get(name) is stock
        if holds and module.__name__.startswith(("tf_keras.", "tensorflow.keras.")):
            setattr(module, name, ours)


def prefer_v2(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def prefer(what: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("use_legacy_optimizer", True)
        return stock(as_optimizer_v2(what), *args, **kwargs)

    return prefer


def as_optimizer_v2(what: Any) -> Any:
    """The optimiser of 2.6 in the place of a later one, which no IPU program means."""
    if type(what) not in [today for today, _ in pairs_of_optimizers()]:
        return what
    _notices.warn(
        f"this {type(what).__name__} is newer than Keras 2.6, probably because it was "
        "imported before tensorflow.python.ipu; the model gets the optimiser of 2.6 of "
        "that name, with the same settings."
    )
    return importlib.import_module(OPTIMIZERS).convert_to_legacy_optimizer(what)


def expand_1d(data: Tensors) -> Tensors:
    """The tensors of `data`; those of rank 1 get a last dimension of 1."""
    tf = importlib.import_module("tensorflow.compat.v2")

    def expand(value: Any) -> Any:
        is_vector = isinstance(value, tf.Tensor) and value.shape.rank == 1
        return tf.expand_dims(value, axis=-1) if is_vector else value

    return tf.nest.map_structure(expand, data)


def expand_vectors() -> None:
    """Let models see a batch of n numbers as [n, 1]."""
    # Keras 2.6 did so before every step; today a label of shape [n] may broadcast
    # against a prediction of shape [n, 1].
    model = find_model()
    for name in ("train_step", "test_step", "predict_step"):
        setattr(model, name, with_expanded_vectors(getattr(model, name)))


def with_expanded_vectors(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def expanding(self, data: Tensors) -> Any:
        return step(self, expand_1d(data))

    return expanding


def accept_tensors_as_steps() -> None:
    """Let `compile(steps_per_execution=...)` take a tensor."""
    # Today's compile compares the value with "auto", which a tensor refuses.
    model = find_model()
    stock = model.compile

    @functools.wraps(stock)
    def compile(self, *args: Any, **kwargs: Any) -> Any:
        steps = kwargs.get("steps_per_execution")
        if steps is not None and not isinstance(steps, int | str):
            kwargs["steps_per_execution"] = int(steps)
        return stock(self, *args, **kwargs)

    model.compile = compile


def give_layers_their_methods() -> None:
    """Let layers have `apply`, and `add_update` the inputs that an update is for."""
    # Today's Keras has dropped both; the inputs have meant nothing since 2.0.
    for module in ("base_layer", "base_layer_v1"):
        layer: Any = importlib.import_module(f"tf_keras.src.engine.{module}").Layer
        layer.add_update = without_inputs(layer.add_update)
        layer.apply = apply


def without_inputs(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def add_update(self, updates: Any, inputs: Any = None) -> Any:
        return stock(self, updates)

    return add_update


def apply(layer: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the layer."""
    return layer(inputs, *args, **kwargs)


def find_model() -> Any:
    return importlib.import_module("tf_keras.src.engine.training").Model
