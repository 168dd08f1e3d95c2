"""Starts the import finder; runs whenever a Python of the environment starts.

In: nothing. Out: one finder at the front of `sys.meta_path` that looks at imports of
TensorFlow and Keras and leaves all others alone. What serves them is loaded with the
first such import: a program without TensorFlow pays for this file only, which is why it
imports nothing but sys.
"""

import sys

from tensorflow_ipu import SWITCH

WATCHED = frozenset(
    {"tensorflow", "tensorflow_core", "tensorflow_estimator", "keras", "tf_keras"}
)


class Finder:
    """Hands the imports of TensorFlow and Keras to `tensorflow_ipu._finder`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        """The spec of a module that Popple serves; None leaves it to others."""
        if name.partition(".")[0] not in WATCHED or is_switched_off():
            return None
        from tensorflow_ipu import _finder

        try:
            return _finder.find_spec(name, path)
        except ImportError:
            if is_import():
                raise
            return None  # someone only asks whether there is such a module


def is_import() -> bool:
    """Whether an import statement asks the finder, and not importlib.util.find_spec."""
    machinery = sys._getframe(2)
    asking = machinery.f_back
    return asking is not None and asking.f_code.co_name.startswith("_find_and_load")


def is_switched_off() -> bool:
    """Whether the user wants TensorFlow and Keras as they are installed."""
    from os import environ

    return environ.get(SWITCH) == "off"


def install() -> None:
    """Put the finder in front; a second call changes nothing."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)  # pyright: ignore[reportArgumentType]


install()
