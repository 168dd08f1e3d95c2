"""Makes tf_keras the Keras 2.6 of a program for the IPU, when both are there.

In: tf_keras, as soon as it is loaded in a program for the IPU. Out: the same modules,
with the names that 2.6 had (`names.ADDED`), its optimisers behind their public names,
and its behaviour (`behaviour`).
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tensorflow_ipu.keras_layout import behaviour
from tensorflow_ipu.keras_layout.names import ADDED

# The public faces of Keras: each is a tree of modules with its own copy of every name.
FACES = (
    "tf_keras",
    "tf_keras.api._v1.keras",
    "tf_keras.api._v2.keras",
    "tensorflow.keras",
)
OPTIMIZER_FACES = tuple(f"{face}.optimizers" for face in FACES)


@dataclass
class Adoption:
    """Whether tf_keras has been made Keras 2.6."""

    is_done: bool = False


ADOPTION = Adoption()


def adopt_if_loaded() -> None:
    """Change a tf_keras that was loaded before the program turned to the IPU."""
    module = sys.modules.get("tf_keras")
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        adopt()


def adopt() -> None:
    """Change tf_keras; all of its code has run. A second call changes nothing."""
    if ADOPTION.is_done:
        return
    ADOPTION.is_done = True
    behaviour.read_names_as_optimizers_of_2_6()
    behaviour.expand_vectors()
    behaviour.accept_tensors_as_steps()
    behaviour.give_layers_their_methods()
    for name in {*ADDED, *OPTIMIZER_FACES} & set(sys.modules):
        extend(sys.modules[name])


def extend(module: ModuleType) -> None:
    """Give one loaded module the names that it had in 2.6."""
    if module.__name__ in ADDED:
        add_names(module, ADDED[module.__name__])
    if module.__name__ in OPTIMIZER_FACES:
        behaviour.show_optimizers_of_2_6(module)


def add_names(module: ModuleType, names: dict[str, str]) -> None:
    """Let a module find more names, once they are asked for."""

    def find(name: str) -> Any:
        if name not in names:
            text = f"module {module.__name__!r} has no attribute {name!r}"
            raise AttributeError(text)
        home, _, attribute = names[name].partition(":")
        owner = importlib.import_module(home)
        return getattr(owner, attribute) if attribute else owner

    vars(module)["__getattr__"] = find
