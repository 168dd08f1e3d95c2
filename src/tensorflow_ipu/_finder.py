"""What Popple serves under the names of TensorFlow and Keras.

In: a module name, as the import system asks for it. Out: the spec of what Popple serves
under that name, or None for everything that is stock.

- `tensorflow.python.ipu`, `tensorflow.compiler.plugin.poplar` and `keras.ipu` are
  folders of this package.
- `keras`, in a program for the IPU, is tf_keras in the layout of Keras 2.6
  (`keras_layout`); in any other program it is the installed Keras.
- `tensorflow` is stock; its first import chooses tf_keras behind `tf.keras`, and a few
  of its modules look out for programs that name the IPU (`_watch`). In a program for
  the IPU that was written for version 1 it is that (`_tensorflow1`).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from popple.lazy import LazyModule
from tensorflow_ipu import _former, _former_names, _notices, _tensorflow1, _watch
from tensorflow_ipu._detection import DETECTION, is_imported_by_program
from tensorflow_ipu.keras_layout import adoption, names, proxy

if TYPE_CHECKING:
    from popple.session import former_numpy
else:
    former_numpy = LazyModule("popple.session.former_numpy")

HERE = Path(__file__).parent

# Served name -> folder of this package.
FOLDERS = {
    "tensorflow.python.ipu": "ipu",
    "tensorflow.contrib": "contrib",
    "tensorflow.compiler.plugin": "plugin",
    "tensorflow.compiler.plugin.poplar": "plugin_poplar",
    "tensorflow.compiler.xla.python_api": "xla_python_api",
    "keras.ipu": "keras_ipu",
}

# A name of ours, or of TensorFlow 2.6, that programs use -> the module it stands for.
ALIASES = {
    # Estimators have left TensorFlow; those of IPU programs are ours.
    "tensorflow.python.estimator": "tensorflow.python.ipu._estimator",
    "tensorflow_estimator": "tensorflow",
    "tensorflow.python.distribute.distribution_strategy_context": (
        "tensorflow.python.distribute.distribute_lib"
    ),
    "tensorflow.python.training.training_ops": "tensorflow.python.ops.gen_training_ops",
    # What TensorFlow 1.15 was inside, which its programs reach into.
    "tensorflow_core": "tensorflow",
    "tensorflow.contrib.framework.python.framework": "tensorflow.python.training",
    "tensorflow.contrib.framework.python": "tensorflow.python.training",
    "tensorflow.contrib.opt.python.training": "tensorflow.contrib.opt",
    "tensorflow.contrib.opt.python": "tensorflow.contrib.opt",
    "tensorflow.contrib.ipu.python.poprand": "tensorflow.python.ipu.ops.rand_ops",
    "tensorflow.contrib.ipu.python": "tensorflow.python.ipu",
    "tensorflow.contrib.ipu": "tensorflow.python.ipu",
    "tensorflow.keras.ipu": "keras.ipu",
    **_former_names.MODULES,
    # The Keras inside TensorFlow does not mix with the other; programs mix them.
    "tensorflow.python.keras": "keras",
    "tf_keras.legacy_tf_layers": "tf_keras.src.legacy_tf_layers",
}

# Modules that get names of 2.6 when they are loaded.
EXTENDED = frozenset({*adoption.FACES, *adoption.OPTIMIZER_FACES, *names.ADDED})

INNER_KERAS = "tensorflow.python.keras."
BOOT = "tensorflow_ipu.boot"  # the module of Popple's own finder
TENSORFLOW = "2.21"
LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
LEGACY_KERAS = "TF_USE_LEGACY_KERAS"


def find_spec(name: str, path: Sequence[str] | None = None) -> ModuleSpec | None:
    """What Popple serves under `name`, if anything."""
    if name == "tensorflow":
        prepare_tensorflow()
        return find_with(FirstLoader, name, path) if DETECTION.is_for_ipu else None
    if name in _watch.WATCHED:
        return find_with(WatchingLoader, name, path)
    if name in EXTENDED:
        return find_extended(name, path)
    return _former.find_spec(name, find_ours(name, path))


def find_ours(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """A module that Popple has, or has another name for."""
    if name.startswith("keras"):
        return find_in_keras(name, path)
    if name == "tensorflow.contrib":
        if not is_for_ipu():
            return None  # no program for the IPU: TensorFlow has dropped it
        _tensorflow1.note_contrib()
    if name in FOLDERS:
        return serve_folder(name)
    if name.startswith(_former.CONTRIB):
        return find_alias(name) or _former.find_contrib(name, path)
    return find_alias(name)


def prepare_tensorflow() -> None:
    """Choose the Keras behind `tf.keras`: TensorFlow decides when it is imported."""
    if is_for_ipu() and find_stock("tensorflow") is None:
        warn_of_missing("TensorFlow")
    if find_stock("tf_keras") is not None:
        # TensorFlow reads it once, when it is imported; a value of the user's counts.
        os.environ.setdefault(LEGACY_KERAS, "1")


def warn_of_missing(module: str) -> None:
    """Say what to install, to a program for the IPU that imports what is not there.

    Libraries ask for TensorFlow too, to learn whether it is there: they go on without.
    """
    if is_imported_by_program():
        _notices.warn(str(_notices.missing(module)))


def is_noisy() -> bool:
    """Whether TensorFlow would warn of IPUs: it knows no device of that kind."""
    return DETECTION.is_for_ipu and LOG_LEVEL not in os.environ


def is_for_ipu() -> bool:
    """Whether the program is one for the IPU, as far as can be seen now."""
    if not DETECTION.is_for_ipu and DETECTION.examine():
        turn_to_ipu()
    return DETECTION.is_for_ipu


def touch() -> None:
    """The program imports something of the IPU."""
    if not DETECTION.is_for_ipu:
        DETECTION.is_for_ipu = True
        turn_to_ipu()
    check_versions()


def check_versions() -> None:
    """Refuse a TensorFlow whose insides are not those Popple was written against."""
    if find_stock("tf_keras") is None:
        raise _notices.missing("tf_keras")
    version = getattr(sys.modules.get("tensorflow"), "__version__", TENSORFLOW)
    if version == _tensorflow1.VERSION:  # as programs of that time see it
        version = sys.modules["tensorflow.compat.v2"].__version__
    if not f"{version}.".startswith(f"{TENSORFLOW}."):
        raise _notices.another_tensorflow(version)


def turn_to_ipu() -> None:
    """Bring what is already loaded in line with a program for the IPU."""
    adoption.adopt_if_loaded()
    former_numpy.serve_former_names()
    if is_loaded("tensorflow"):
        forget_inner_keras()
        _tensorflow1.adapt()
    if not is_legacy(os.environ.get(LEGACY_KERAS, "1")):
        _notices.warn_of_chosen_keras(os.environ[LEGACY_KERAS])
    if is_another_keras_loaded():
        _notices.warn_of_another_keras()
        vars(sys.modules["keras"]).setdefault("__getattr__", explain_absence)


def forget_inner_keras() -> None:
    """Let the next import of `tensorflow.python.keras` find tf_keras.

    TensorFlow has imported its own for itself, and keeps it.
    """
    if is_another_keras_loaded() or find_stock("tf_keras") is None:
        return
    for name in [name for name in sys.modules if f"{name}.".startswith(INNER_KERAS)]:
        del sys.modules[name]
    vars(sys.modules["tensorflow.python"]).pop("keras", None)


def is_loaded(name: str) -> bool:
    """Whether all code of a module has run."""
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def is_legacy(value: str) -> bool:
    """Whether TensorFlow takes tf_keras at this value of TF_USE_LEGACY_KERAS."""
    return value in ("1", "true", "True")


def is_another_keras_loaded() -> bool:
    """Whether `keras` is the installed Keras rather than ours."""
    return not isinstance(sys.modules.get("keras"), proxy.Proxy | None)


def explain_absence(name: str) -> Any:
    """The attribute lookup of the installed Keras, when a program wants Keras 2.6."""
    if proxy.is_served(f"keras.{name}"):
        raise AttributeError(str(_notices.another_keras(f"keras.{name}")))
    raise AttributeError(f"module 'keras' has no attribute {name!r}")


def find_extended(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """A module that gets more names once its own code has run."""
    # Programs import the public faces; the rest follows with TensorFlow itself.
    wanted = is_for_ipu() if name in adoption.FACES else DETECTION.is_for_ipu
    return find_with(ExtendingLoader, name, path) if wanted else None


def find_with(
    loader: type[SourceFileLoader], name: str, path: Sequence[str] | None
) -> ModuleSpec | None:
    """A stock module that is loaded in a way of ours."""
    spec = find_stock(name, path)
    if spec is not None and spec.origin:
        spec.loader = loader(name, spec.origin)
    return spec


class FirstLoader(SourceFileLoader):
    """Runs TensorFlow for a program for the IPU, then makes it the one it expects."""

    def exec_module(self, module: ModuleType) -> None:
        with quietly() if is_noisy() else contextlib.nullcontext():
            super().exec_module(module)
        forget_inner_keras()
        _tensorflow1.adapt()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """No warnings of TensorFlow's native part, which reads the level once.

    It would explain, with every first run of a session, that variables on IPUs are
    elsewhere.
    """
    os.environ[LOG_LEVEL] = "2"  # errors only
    try:
        yield
    finally:
        del os.environ[LOG_LEVEL]  # the rest of the program logs as it likes


class WatchingLoader(SourceFileLoader):
    """Runs a module as always, then looks out for the IPU in it."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _watch.watch(module, is_for_ipu)


class ExtendingLoader(SourceFileLoader):
    """Runs a module as always, then gives it what it had in 2.6."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        adoption.extend(module)
        if module.__name__ == "tf_keras":
            adoption.adopt()


def find_in_keras(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """A module of `keras`: ours in a program for the IPU, the installed one else."""
    if name == "keras":
        return find_keras()
    if not is_another_keras_loaded():
        return serve_folder(name) if name in FOLDERS else proxy.find_spec(name)
    if name in FOLDERS or (DETECTION.is_for_ipu and is_of_2_6(name, path)):
        raise _notices.another_keras(name)
    return None


def find_keras() -> ModuleSpec | None:
    if not is_for_ipu():
        return None
    if find_stock("tf_keras") is None:
        warn_of_missing("tf_keras")
        return None
    return proxy.find_spec("keras")


def is_of_2_6(name: str, path: Sequence[str] | None) -> bool:
    """Whether Keras 2.6 has a module of that name, and the installed Keras not."""
    return find_stock(name, path) is None and bool(names.targets_of(name))


def serve_folder(name: str) -> ModuleSpec | None:
    """A package of ours under the name that programs know."""
    touch()
    folder = HERE / FOLDERS[name]
    return importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )


def find_alias(name: str) -> ModuleSpec | None:
    """A module that stands for one of another name."""
    if not name.startswith(tuple(ALIASES)):  # thousands of modules pass here
        return None
    former = next((a for a in ALIASES if f"{name}.".startswith(f"{a}.")), None)
    if former is None or not is_for_ipu() or not is_loaded("tensorflow"):
        return None
    if former == "tensorflow.python.keras" and is_another_keras_loaded():
        return None
    # Asking may have turned the program to the IPU, which forgets the Keras inside
    # TensorFlow and with it the package of this module, where Python looks afterwards.
    package = name.rpartition(".")[0]
    if package and package not in sys.modules:
        importlib.import_module(package)
    return ModuleSpec(name, AliasLoader(ALIASES[former] + name[len(former) :]))


class AliasLoader(proxy.Alias):
    """An alias of `keras.ipu` works also where `keras` is the installed Keras."""

    def exec_module(self, module: ModuleType) -> None:
        if self.target == "keras.ipu" and is_another_keras_loaded():
            load_alone("keras.ipu")
        super().exec_module(module)


def load_alone(name: str) -> None:
    """Import a package of ours without its parent."""
    spec = None if name in sys.modules else serve_folder(name)
    if spec is not None and spec.loader is not None:
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])


def find_stock(name: str, path: Sequence[str] | None = None) -> ModuleSpec | None:
    """What the import would find without Popple."""
    # All finders but ours, which would ask itself without end.
    others = [f for f in sys.meta_path if getattr(f, "__module__", "") != BOOT]
    specs = (finder.find_spec(name, path) for finder in others)
    return next((spec for spec in specs if spec is not None), None)
