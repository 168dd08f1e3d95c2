"""Serves the names of older releases that `_former_names` lists.

In: modules of ours as they are imported. Out: the same modules, which find their former
names too, or say what took their place.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from tensorflow_ipu import _notices
from tensorflow_ipu._former_names import GONE, MOVED

__all__ = ["CONTRIB", "find_contrib", "find_spec"]

CONTRIB = "tensorflow.contrib."


def find_spec(name: str, spec: ModuleSpec | None) -> ModuleSpec | None:
    """The spec of a module that had more names in older releases, or has gone."""
    package, _, leaf = name.rpartition(".")
    if spec is None and leaf in GONE.get(package, ()):
        return ModuleSpec(name, GoneLoader())
    if name not in MOVED and name not in GONE:
        return spec
    if spec is None and package in sys.modules:
        spec = PathFinder.find_spec(name, sys.modules[package].__path__)
    if spec is not None and isinstance(spec.loader, SourceFileLoader):
        spec.loader = FormerLoader(name, spec.loader.path)
    return spec


class FormerLoader(SourceFileLoader):
    """Runs a module of ours, then lets it find names of older releases."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        serve_former_names(module)


class GoneLoader(importlib.abc.Loader):
    """Refuses a module of older releases, with what to use in its place."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        package, _, leaf = spec.name.rpartition(".")
        raise _notices.gone_module(spec.name, GONE[package][leaf])

    def exec_module(self, module: ModuleType) -> None:
        del module


def serve_former_names(module: ModuleType) -> None:
    """Let a module find its former names, when nothing else has them."""
    inner = vars(module).get("__getattr__")
    moved = MOVED.get(module.__name__, {})
    gone = GONE.get(module.__name__, {})

    def find(name: str) -> Any:
        if name in moved:
            home, _, attribute = moved[name].partition(":")
            owner = importlib.import_module(home)
            return getattr(owner, attribute) if attribute else owner
        if name in gone:
            raise _notices.gone_name(f"{module.__name__}.{name}", gone[name])
        if inner is not None:
            return inner(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module)["__getattr__"] = find


def find_contrib(name: str, path: Sequence[str] | None) -> ModuleSpec:
    """A module of `tensorflow.contrib`; its import fails if Popple does not have it."""
    spec = PathFinder.find_spec(name, path)
    return spec or ModuleSpec(name, AbsentLoader())


class AbsentLoader(importlib.abc.Loader):
    """Refuses a module of `tensorflow.contrib`, with what to use in its place."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        contrib = importlib.import_module("tensorflow.contrib")
        raise contrib.absent_module(spec.name.removeprefix(CONTRIB))

    def exec_module(self, module: ModuleType) -> None:
        del module
