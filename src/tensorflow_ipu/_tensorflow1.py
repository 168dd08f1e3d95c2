"""Gives programs written for TensorFlow 1 the TensorFlow that they expect.

In: the loaded module `tensorflow` of a program for the IPU, and the program's own
files. Out: the same module with the names and the behaviour of version 1, if the files
are written for it. A program that shows nothing (a notebook, a prompt) gets them with
the first name that only version 1 has; one written for version 2 is left alone.

Whoever is not the program must not notice: TensorFlow, tf_keras and Popple's own code
say `tensorflow.python` or `tensorflow.compat.v2`, which stay as they are.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tensorflow_ipu import _detection, _former_data, _notices
from tensorflow_ipu._dialect import (
    VERSIONS,
    Dialect,
    builds_a_graph,
    dialect_of,
    is_loaded_module,
    is_own_file,
    own_files,
)

__all__ = ["adapt", "note_contrib"]

ROOT = "tensorflow"
V1 = "tensorflow.compat.v1"
VERSION = "1.15.5"  # the last of version 1, which the SDK had to the end
V2 = "tensorflow.compat.v2"
# Modules that `tensorflow` had in version 1, and compat.v1 has not.
FORMER = {
    "contrib": "tensorflow.contrib",
    "pywrap_tensorflow": "tensorflow.python.pywrap_tensorflow",
}


@dataclass
class Adaptation:
    """Whether `tensorflow` has become version 1, or may; it never goes back."""

    is_done: bool = False
    is_waiting: bool = False


ADAPTATION = Adaptation()


def adapt() -> None:
    """Bring the loaded `tensorflow` in line with the program."""
    v1, v2 = importlib.import_module(V1), importlib.import_module(V2)
    found = dialect_of(_texts(), v1, v2)
    if found is Dialect.UNKNOWN and builds_a_graph(_texts_of_script()):
        found = Dialect.TENSORFLOW_1
    if found is Dialect.TENSORFLOW_1:
        become_version_1()
    if found is Dialect.UNKNOWN:
        wait_for_version_1(v1)
    if found is not Dialect.TENSORFLOW_1:
        _savers_know_their_graph()


def _texts() -> Iterator[str]:
    """The source of the program, cells of a notebook and commands included."""
    files = [*_detection.main_file(), *_detection.files_that_import()]
    yield from map(_detection.readable_text, dict.fromkeys([*files, *own_files(files)]))
    yield _detection.command_text()


def _texts_of_script() -> Iterator[str]:
    yield from map(_detection.readable_text, own_files(_detection.main_file()))
    yield _detection.command_text()


def become_version_1() -> None:
    """Put the names of version 1 into `tensorflow`, and its behaviour in force."""
    if ADAPTATION.is_done:
        return
    ADAPTATION.is_done = True
    v1, root = importlib.import_module(V1), sys.modules[ROOT]
    _behave_as_version_1(v1)
    # Not `getattr`: what is loaded when it is used is taken as it is.
    names = {name: value for name, value in vars(v1).items() if name[0] != "_"}
    # `tf.compat` stays: it leads to `tensorflow.compat.v1` itself, not to a copy.
    del names["compat"]
    vars(root).update(names)
    for name in VERSIONS:  # programs make sure of it
        vars(v1)[name] = VERSION
    _show_version_1(root)
    _accept_whole_numbers_as_sizes()
    _former_data.serve_statistics(v1.data.experimental)
    root.__path__ = [*v1.__path__, *root.__path__]


def _behave_as_version_1(v1: Any) -> None:
    deprecation = importlib.import_module("tensorflow.python.util.deprecation")
    try:
        with deprecation.silence():  # the program did not call it
            v1.disable_v2_behavior()
    except ValueError as error:  # graphs were built already
        _notices.warn_of_late_version_1(str(error))


def _accept_whole_numbers_as_sizes() -> None:
    # Programs compute sizes by division; a float was good enough if it was whole.
    shapes = importlib.import_module("tensorflow.python.framework.tensor_shape")
    stock = shapes.Dimension.__init__

    @functools.wraps(stock)
    def init(self: Any, value: Any) -> None:
        is_whole = isinstance(value, float) and value.is_integer()
        stock(self, int(value) if is_whole else value)

    shapes.Dimension.__init__ = init


def _savers_know_their_graph() -> None:
    # A program that says `tf.Graph()` and `tf.compat.v1.Session` may be written for
    # either version. Outside of its graph a saver works only in version 1; in version
    # 2 it looks for variables of eager mode, which a session has none of.
    saver = importlib.import_module("tensorflow.python.training.saver").Saver
    for name in ("save", "restore"):
        setattr(saver, name, _in_graph_of_session(getattr(saver, name)))


def _in_graph_of_session(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def call(self: Any, sess: Any, *args: Any, **kwargs: Any) -> Any:
        graph = getattr(sess, "graph", None)
        with contextlib.nullcontext() if graph is None else graph.as_default():
            return stock(self, sess, *args, **kwargs)

    return call


def _show_version_1(root: Any) -> None:
    """Let the program see version 1, and libraries which TensorFlow this is."""
    # Not as plain attributes: those cannot tell who asks.
    for name in VERSIONS:
        vars(root).pop(name, None)
    true = importlib.import_module(V2).__version__

    def find(name: str) -> Any:
        if name in VERSIONS:
            return VERSION if _is_own(_asking_file()) else true
        if name in FORMER:
            return importlib.import_module(FORMER[name])
        raise AttributeError(f"module {ROOT!r} has no attribute {name!r}")

    vars(root)["__getattr__"] = find


def wait_for_version_1(v1: Any) -> None:
    """Let `tensorflow` and the modules in it look for names that only v1 has."""
    ADAPTATION.is_waiting = True
    root = sys.modules[ROOT]
    _look_in(root, v1)
    inner = {n: m for n, m in vars(root).items() if is_loaded_module(m)}
    for name, module in inner.items():
        former = vars(v1).get(name)
        is_public = module.__name__ == f"tensorflow._api.v2.{name}"
        if is_public and is_loaded_module(former):
            _look_in(module, former)


def note_contrib() -> None:
    """`tensorflow.contrib` is imported, maybe by a module that was found late."""
    if ADAPTATION.is_waiting and _is_program_asking("contrib"):
        become_version_1()


def _look_in(module: ModuleType, former: Any) -> None:
    vars(module).setdefault("__getattr__", _lookup(module.__name__, former))


def _lookup(module: str, former: Any) -> Callable[[str], Any]:
    def find(name: str) -> Any:
        is_former = name in dir(former) or (module == ROOT and name in FORMER)
        # Libraries ask what a TensorFlow has to learn which one it is.
        if name[0] == "_" or not is_former or not _is_program_asking(name):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        become_version_1()
        return getattr(former if name in dir(former) else sys.modules[ROOT], name)

    return find


def _is_program_asking(name: str) -> bool:
    """Whether the program itself uses a name, and no library asks whether it exists."""
    asking = _asking_file()
    if not _is_own(asking):
        return False
    # A file that came after the first import may be written for version 2.
    faces = importlib.import_module(V1), importlib.import_module(V2)
    text = _detection.readable_text(asking)
    # `hasattr(tf, "Session")` only asks which TensorFlow this is. A line at a prompt
    # has no text to look at.
    use = rf"(\.\s*|\bimport\b.*\b){re.escape(name)}\b"
    is_used = not text or re.search(use, text) is not None
    return is_used and dialect_of([text], *faces) is not Dialect.TENSORFLOW_2


def _asking_file() -> str:
    files = _detection.files_that_import()
    return next(file for file in files if not file.startswith("<frozen"))


def _is_own(file: str) -> bool:
    """Whether code is the program's; cells of a notebook and prompts are no files."""
    return not os.path.isfile(file) or is_own_file(file)
