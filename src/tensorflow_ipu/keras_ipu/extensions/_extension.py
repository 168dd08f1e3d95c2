"""How a strategy gives a layer more methods: the layer changes its class.

In: a layer under construction and the extension registered for its class. Out: the same
object, now of a class that stands between the user's class and the Keras class the
extension was registered for. So a user's override still comes first and its `super()`
reaches the extension, whose `super()` reaches Keras; nothing of Keras is replaced.

    UserModel -> Functional        becomes        UserModel -> extension -> Functional
"""

from __future__ import annotations

import contextlib
import functools
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.util import tf_decorator

__all__ = ["KerasExtension", "extended_class", "extension_delegate", "plain_models"]

_SWITCH = "__extension_delegate"
_DELEGATE = "_delegate"


class _Making(threading.local):
    """Whether layers made on this thread stay as they are."""

    plain: bool = False


_MAKING = _Making()


@contextlib.contextmanager
def plain_models() -> Iterator[None]:
    """What is made inside gets no extension."""
    outer, _MAKING.plain = _MAKING.plain, True
    try:
        yield
    finally:
        _MAKING.plain = outer


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
    def extend(layer: tf.keras.layers.Layer, class_type: type, extension: Any) -> None:
        """Give `layer`, a `class_type`, the extension, in its first state."""
        if _MAKING.plain:
            return
        if isinstance(layer, KerasExtension) and not isinstance(layer, extension):
            raise RuntimeError(
                f"{layer.name} has an extension already, and another than the one that "
                "this strategy has for it. Make it in the scope of one strategy only."
            )
        if not isinstance(layer, extension):
            original = type(layer)
            # The instance's class, not the class: other models of it may be made
            # elsewhere.
            layer.__class__ = extended_class(original, class_type, extension)
            object.__setattr__(layer, "__original_class__", original)
        extension.__init__(layer)


def _stand_in(cls: type, private: str) -> None:
    """Put a method into `cls` that calls the delegate `cls` itself has for it."""
    public = private.removeprefix("_")
    delegate = vars(cls)[private + _DELEGATE]
    supported = getattr(cls, private + "_supported", None)
    if isinstance(delegate, classmethod) or supported is None:
        return

    def method(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs.pop(_SWITCH, True) and supported(self, *args, **kwargs):
            return delegate(self, *args, **kwargs)
        return getattr(super(cls, self), public)(*args, **kwargs)

    method.__name__ = public
    # Keras reads the arguments of methods, `call` above all.
    setattr(cls, public, tf_decorator.make_decorator(delegate, method, public))


def extension_delegate(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of a layer as one that an extension may stand in for.

    Methods of instances need no mark (the extension comes before the layer's class);
    a class method is looked up in the extension that the current strategy has.
    """

    def method(owner: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop(_SWITCH, True)
        extension = _registered_for(owner) if wanted else None
        delegate = getattr(extension, f"_{function.__name__}{_DELEGATE}", None)
        if delegate is None:
            return function(owner, *args, **kwargs)
        return delegate.__func__(owner, *args, **kwargs)

    return tf_decorator.make_decorator(function, method)


def _registered_for(owner: Any) -> type | None:
    """The extension that the current strategy has for a class; None for instances."""
    find = getattr(tf.distribute.get_strategy(), "_get_keras_extension", None)
    if find is None or not isinstance(owner, type):
        return None
    found = (find(cls, KerasExtension) for cls in owner.__mro__)
    return next((extension for extension in found if extension is not None), None)


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
