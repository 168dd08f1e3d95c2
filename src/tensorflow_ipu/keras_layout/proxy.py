"""The package `keras` of a program for the IPU.

In: a module name below `keras`. Out: a spec. A module of Keras 2.6 that is one module
of tf_keras is that very module under one more name; a package, or a module whose
contents were scattered, is a `Proxy` that looks its names up where they are now.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tensorflow_ipu.keras_layout.names import targets_of


class Proxy(ModuleType):
    """A package that holds nothing itself and finds every name in its targets."""

    def __init__(self, name: str, targets: tuple[str, ...]) -> None:
        super().__init__(name, f"{name} of Keras 2.6: {', '.join(targets)}.")
        self.__dict__["_targets"] = targets

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [each for each in dir(self) if not each.startswith("_")]
        found = [vars(t)[name] for t in self._modules() if name in vars(t)]
        if found and not isinstance(found[0], ModuleType):
            return found[0]
        return self._submodule(name, found)

    def __dir__(self) -> list[str]:
        return sorted({name for module in self._modules() for name in dir(module)})

    def _modules(self) -> list[ModuleType]:
        return [importlib.import_module(name) for name in self.__dict__["_targets"]]

    def _submodule(self, name: str, found: list[Any]) -> ModuleType:
        """A module below this one, under its name of 2.6 rather than today's."""
        full = f"{self.__name__}.{name}"
        if not name.startswith("__") and is_served(full):
            return importlib.import_module(full)
        if found:
            return found[0]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class Alias(importlib.abc.Loader):
    """Makes a name stand for a module that has another name."""

    def __init__(self, target: str) -> None:
        self.target = target

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self.target)


class ProxyLoader(importlib.abc.Loader):
    """Makes the proxy of a package."""

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.targets = targets

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Proxy(spec.name, self.targets)

    def exec_module(self, module: ModuleType) -> None:
        importlib.import_module(self.targets[0])


def find_spec(name: str) -> ModuleSpec | None:
    """The spec of `keras` or a module below it; None if Keras 2.6 had none."""
    targets = targets_of(name)
    if not targets:
        return None
    alone = implementation(targets)
    if alone:
        return ModuleSpec(name, Alias(alone))
    return ModuleSpec(name, ProxyLoader(targets), origin=__file__, is_package=True)


def is_served(name: str) -> bool:
    return name == "keras.ipu" or bool(targets_of(name))


def implementation(targets: tuple[str, ...]) -> str:
    """The one module that implements all the others re-export, or nothing."""
    bases = {target.replace("tf_keras.src.", "tf_keras.", 1) for target in targets}
    return targets[-1] if len(bases) == 1 and not is_package(targets[-1]) else ""


def is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None
