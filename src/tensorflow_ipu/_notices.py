"""What a program is told when TensorFlow, Keras and the IPU do not fit together.

In: the facts found by `_finder`. Out: an `ArrivalError` to raise, or a warning in
TensorFlow's log, each with what to do.
"""

from __future__ import annotations

import logging
import sys

from popple.errors import UsageError

IN_TIME = (
    "Import tensorflow.python.ipu before keras, write `from tensorflow import keras`, "
    "or set POPPLE_TENSORFLOW=on."
)
INSTALL = "Install them with: pip install 'popple[tensorflow]'"


class ArrivalError(UsageError, ImportError):
    """Something a program for the IPU imports cannot be served as things are."""


def another_keras(name: str) -> ArrivalError:
    """Keras 3 holds the name `keras`, and a name of Keras 2.6 is asked for."""
    return ArrivalError(
        f"{name} belongs to Keras 2, and Keras 3 has already been imported as `keras`.",
        remedy=IN_TIME,
    )


def another_tensorflow(version: str) -> ArrivalError:
    """The installed TensorFlow is older or newer than the one Popple reaches into."""
    return ArrivalError(
        f"Programs for the IPU run on TensorFlow 2.21; this is TensorFlow {version}.",
        remedy="Install it with: pip install 'tensorflow>=2.21,<2.22'",
    )


def missing(module: str) -> ArrivalError:
    """A package that programs for the IPU need is not installed."""
    running = ".".join(map(str, sys.version_info[:2]))
    return ArrivalError(
        f"Programs for the IPU need {module}, which is not installed for Python "
        f"{running}; TensorFlow 2.21 and tf_keras exist for Python 3.10 to 3.13.",
        remedy=INSTALL,
    )


class GoneError(UsageError, AttributeError):
    """A name of an older release that nothing serves."""


def gone_name(name: str, successor: str) -> GoneError:
    """A name of an older release is asked for."""
    return GoneError(_that_it_is_gone(name), remedy=f"Use {successor}.")


def gone_module(name: str, successor: str) -> ArrivalError:
    """A module of an older release is imported."""
    return ArrivalError(_that_it_is_gone(name), remedy=f"Use {successor}.")


def _that_it_is_gone(name: str) -> str:
    return f"{name} went before SDK 3.4, and Popple does not have it."


def warn(text: str) -> None:
    """Say something in TensorFlow's own log."""
    logging.getLogger("tensorflow").warning("Popple: %s", text)


def warn_of_another_keras() -> None:
    """Keras 3 was imported before the program turned out to be one for the IPU."""
    warn(
        "Keras 3 was imported as `keras` before the IPU; models made with it do not "
        f"run on the IPU. {IN_TIME}"
    )


def warn_of_chosen_keras(value: str) -> None:
    """The user chose Keras 3 for `tf.keras`."""
    warn(
        f"TF_USE_LEGACY_KERAS={value} puts Keras 3 behind tf.keras; models made with "
        "it do not run on the IPU. Unset it."
    )


def warn_of_late_version_1(reason: str) -> None:
    """A program turned out to be written for TensorFlow 1 after it had begun."""
    warn(
        "this program uses names of TensorFlow 1 and gets them, but TensorFlow cannot "
        f"change its behaviour any more ({reason}). Call "
        "tf.compat.v1.disable_v2_behavior() right after importing tensorflow."
    )
