"""How a strategy gives a layer more methods: the layer changes its class.

In: a layer under construction and the extension registered for its class. Out: the same
object, now of a class that stands between the user's class and the Keras class the
extension was registered for. So a user's override still comes first and its `super()`
reaches the extension, whose `super()` reaches Keras; nothing of Keras is replaced.

    UserModel -> Functional        becomes        UserModel -> extension -> Functional
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf

__all__ = ["KerasExtension", "extended_class", "extension_delegate"]

_SWITCH = "__extension_delegate"
_DELEGATE = "_delegate"


class KerasExtension:
    """Base of what a strategy adds to a layer.

    A pair of methods `_x_supported(...)` and `_x_delegate(...)` in a subclass stands in
    for method `x` of the layer: it runs where the first says yes, and reaches the
    layer's own `x` with `self.x(..., __extension_delegate=False)`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        names = [name for name in vars(cls) if name.endswith(_DELEGATE)]
        for name in names:
            # The rest of a configuration is not a method of layers to stand in for.
            if name != "_deserialize_from_config_delegate":
                _stand_in(cls, name.removesuffix(_DELEGATE))

    @staticmethod
    @functools.cache
def extended_class(original: type, class_type: type, extension: type) -> type:
    """`original` with `extension` between it and its base `class_type`."""
    # The extension's constructor takes no arguments and is called apart from the
    # layer's: it must not stand in the way of `super().__init__(...)`.
    between = _derived(
        class_type, (extension, class_type), __init__=class_type.__init__
    )
    if original is class_type:
        return between
    return _derived(original, (original, between))


def _derived(model: type, bases: tuple[type, ...], **members: Any) -> type:
    """A class with these bases that is called what `model` is called."""
    named = {
        "__module__": model.__module__,
        "__qualname__": model.__qualname__,
        "__doc__": model.__doc__,
    }
    return types.new_class(
        model.__name__, bases, exec_body=lambda space: space.update(named, **members)
    )
