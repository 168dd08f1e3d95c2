"""What tf_keras does otherwise than Keras 2.6 did, set right for programs of the IPU.

In: tf_keras, as soon as it is loaded in a program for the IPU. Out: the same modules,
with the optimisers of 2.6 behind their public names, the names 2.6 had, and its
treatment of vectors and of `steps_per_execution`. Every change is one small function.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tensorflow_ipu import _notices
from tensorflow_ipu.keras_layout.names import ADDED

# The public faces of Keras: each has its own copy of every public name.
FACES = (
    "tf_keras",
    "tf_keras.api._v1.keras",
    "tf_keras.api._v2.keras",
    "tensorflow.keras",
)
OPTIMIZER_FACES = tuple(f"{face}.optimizers" for face in FACES)

# Module of today's optimiser -> its class -> module of the optimiser of 2.6.
OPTIMIZERS = {
    "adadelta": ("Adadelta", "adadelta"),
    "adagrad": ("Adagrad", "adagrad"),
    "adam": ("Adam", "adam"),
    "adamax": ("Adamax", "adamax"),
    "ftrl": ("Ftrl", "ftrl"),
    "nadam": ("Nadam", "nadam"),
    "rmsprop": ("RMSprop", "rmsprop"),
    "sgd": ("SGD", "gradient_descent"),
}


@dataclass
class Adoption:
    """Whether tf_keras has been set right."""

    is_done: bool = False


ADOPTION = Adoption()


def adopt_if_loaded() -> None:
    """Set tf_keras right, if it was loaded before the program turned to the IPU."""
    if is_loaded("tf_keras"):
        adopt()


def adopt() -> None:
    """Set tf_keras right, once all of its code has run."""
    if ADOPTION.is_done:
        return
    ADOPTION.is_done = True
    for name in (*ADDED, *OPTIMIZER_FACES):
        extend(name)
    read_names_as_optimizers_of_2_6()
    expand_vectors()
    accept_tensors_as_steps()


def is_loaded(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def extend(name: str) -> None:
    """Give one module what it had in 2.6, if it is loaded."""
    module = sys.modules.get(name)
    if module is None:
        return
    add_names(module, ADDED.get(name, {}))
    if name in OPTIMIZER_FACES:
        show_optimizers_of_2_6(module)


def add_names(module: ModuleType, names: dict[str, str]) -> None:
    """Let a module find more names, when they are asked for."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        home, _, attribute = names[name].partition(":")
        owner = importlib.import_module(home)
        return getattr(owner, attribute) if attribute else owner

    if names:
        vars(module)["__getattr__"] = find


def show_optimizers_of_2_6(face: ModuleType) -> None:
    # Programs for the IPU rely on OptimizerV2: its get_gradients, slots and decay.
    for today, former in pairs_of_optimizers():
        for name, value in list(vars(face).items()):
            if value is today:
                setattr(face, name, former)


def pairs_of_optimizers() -> list[tuple[type, type]]:
    """Every optimiser of today with the one of 2.6 of the same name."""
    base = "tf_keras.src.optimizers"
    pairs = [
        (find_class(f"{base}.{today}", name), find_class(f"{base}.legacy.{former}", name))
        for today, (name, former) in OPTIMIZERS.items()
    ]
    today = find_class(f"{base}.optimizer", "Optimizer")
    return [*pairs, (today, find_class(f"{base}.legacy.optimizer_v2", "OptimizerV2"))]


def find_class(module: str, name: str) -> type:
    return getattr(importlib.import_module(module), name)


def read_names_as_optimizers_of_2_6() -> None:
    """`compile("adam")`, and a configuration without contents, mean OptimizerV2."""
    optimizers = importlib.import_module("tf_keras.src.optimizers")
    for name in ("get", "deserialize"):
        stock = getattr(optimizers, name)
        prefer = prefer_optimizer_v2(stock)
        for face in ("tf_keras.src.optimizers", *OPTIMIZER_FACES):
            if face in sys.modules:
                setattr(sys.modules[face], name, prefer)


def prefer_optimizer_v2(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def prefer(what: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("use_legacy_optimizer", True)
        return stock(as_optimizer_v2(what), *args, **kwargs)

    return prefer


def as_optimizer_v2(what: Any) -> Any:
    """An optimiser whose class was imported before the program touched the IPU."""
    if type(what) not in [today for today, _ in pairs_of_optimizers()]:
        return what
    _notices.warn(
        f"{type(what).__name__} was imported before tensorflow.python.ipu; the model "
        "gets an optimiser of Keras 2.6 with the same settings."
    )
    optimizers = importlib.import_module("tf_keras.src.optimizers")
    return optimizers.convert_to_legacy_optimizer(what)


def expand_1d(data: Any) -> Any:
    """The tensors of `data`, those of rank 1 with a last dimension of 1 added."""
    tf = importlib.import_module("tensorflow")

    def expand(value: Any) -> Any:
        is_vector = isinstance(value, tf.Tensor) and value.shape.rank == 1
        return tf.expand_dims(value, axis=-1) if is_vector else value

    return tf.nest.map_structure(expand, data)


def expand_vectors() -> None:
    # Keras 2.6 made [n] into [n, 1] in every batch; today's losses would broadcast a
    # label of shape [n] against a prediction of shape [n, 1].
    model = importlib.import_module("tf_keras.src.engine.training").Model
    for name in ("train_step", "test_step", "predict_step"):
        setattr(model, name, with_expanded_vectors(getattr(model, name)))


def with_expanded_vectors(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def expanding(self: Any, data: Any) -> Any:
        return step(self, expand_1d(data))

    return expanding


def accept_tensors_as_steps() -> None:
    # Today's compile compares steps_per_execution with "auto", which a tensor refuses.
    model = importlib.import_module("tf_keras.src.engine.training").Model
    stock = model.compile

    @functools.wraps(stock)
    def compile(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps = kwargs.get("steps_per_execution")
        if steps is not None and not isinstance(steps, int | str):
            kwargs["steps_per_execution"] = int(steps)
        return stock(self, *args, **kwargs)

    model.compile = compile
