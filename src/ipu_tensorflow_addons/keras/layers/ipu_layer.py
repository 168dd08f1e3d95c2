"""What the layers for the IPU have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow.compat.v2 import keras
from tensorflow.python import ipu  # noqa: F401  makes the program one for the IPU

_Layer: Any = keras.layers.Layer


class IPULayer(_Layer):
    """A layer that stands for one of Keras and refuses what the device cannot do."""

    def _check_unsupported(self, value: Any, name: str) -> None:
        """Refuse an argument of Keras that was given a value."""
        check_unsupported(type(self).__name__, {name: value}, {name: None})


def check_unsupported(
    layer: str, given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> None:
    """Refuse arguments that are neither their default nor empty."""
    for name, default in defaults.items():
        value = given.get(name, default)
        if value and value != default:
            raise NotImplementedError(
                f"IPU custom {layer} layer does not support {name}: leave it out."
            )
