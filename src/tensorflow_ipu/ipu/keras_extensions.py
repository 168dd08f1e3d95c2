"""How Keras models made in a strategy's scope get their IPU methods.

`keras.ipu` registers which extension belongs to which class of model; a strategy gives
an instance the class that has both.
"""

from __future__ import annotations

import contextlib
import importlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v2 as tf

from ._config import age

Key = tuple[type, type]


class _Extensions:
    """The extensions every strategy knows: (class, extension class) -> extension."""

    def __init__(self) -> None:
        self._extensions: OrderedDict[Key, type] = OrderedDict()

    def _register_extension(
        self, class_type: type, extension_type: type, extension: type
    ) -> None:
        self._extensions[class_type, extension_type] = extension

    def _delete_extension(self, class_type: type, extension_type: type) -> None:
        self._extensions.pop((class_type, extension_type), None)

    def _get_extension(self, class_type: type, extension_type: type) -> type | None:
        return self._extensions.get((class_type, extension_type))

    def __iter__(self) -> Iterator[tuple[Key, type]]:
        return iter(list(self._extensions.items()))


_extensions_manager = _Extensions()


class KerasExtensions:
    """The part of a strategy that extends Keras."""

    _enable_legacy_iterators = True

    def __init__(
        self,
        enable_dataset_iterators: bool = True,
        enable_keras_extensions: bool = True,
    ) -> None:
        self._enable_iterators = enable_dataset_iterators
        self._enable_keras_extensions = enable_keras_extensions
        self._keras_extensions: OrderedDict[Key, type] = OrderedDict()
        if enable_keras_extensions:
            # Loaded by asking for it: it registers the extensions of Keras models.
            _ = importlib.import_module(__package__ or "").keras

    def _enable_dataset_iterators(self) -> bool:
        # Before 2.2 the host iterated, whatever the shapes of its batches were.
        is_wanted = tf.executing_eagerly() and self._enable_iterators
        return is_wanted and not age.shows_age()

    @contextlib.contextmanager
    def _host_iterators(self) -> Iterator[None]:
        """Iterators over data sets made inside are TensorFlow's own."""
        outer, self._enable_iterators = self._enable_iterators, False
        try:
            yield
        finally:
            self._enable_iterators = outer

    def _create_dataset_iterator(self, dataset: tf.data.Dataset) -> Any:
        from . import ipu_infeed_queue

        return ipu_infeed_queue.IPUOwnedIterator(dataset=dataset)

    def _register_keras_extension(
        self, class_type: type, extension_type: type, extension: type
    ) -> None:
        self._keras_extensions[class_type, extension_type] = extension

    def _delete_keras_extension(self, class_type: type, extension_type: type) -> None:
        self._keras_extensions.pop((class_type, extension_type), None)

    def _get_keras_extension(
        self, class_type: type, extension_type: type
    ) -> type | None:
        own = self._keras_extensions.get((class_type, extension_type))
        return own or _extensions_manager._get_extension(class_type, extension_type)

    def _patch_keras_extension(self, instance: Any) -> None:
        """Give an instance the extension of its class, once."""
        if not self._enable_keras_extensions:
            return
        for (class_type, extension_type), extension in self._all_extensions():
            if isinstance(instance, class_type):
                extender: Any = extension_type
                extender.extend(instance, class_type, extension)
                return

    @staticmethod
    def create_patched_init(
        instance_cls: Any, extension_cls: Any
    ) -> Callable[..., None]:
        """A constructor for a class that is both: first the model, then the extension.

        The extension's own constructor takes no arguments.
        """

        def construct(self, *args: Any, **kwargs: Any) -> None:
            instance_cls.__init__(self, *args, **kwargs)
            extension_cls.__init__(self)

        return construct

    def _all_extensions(self) -> Iterator[tuple[Key, type]]:
        yield from self._keras_extensions.items()
        for key, extension in _extensions_manager:
            if key not in self._keras_extensions:
                yield key, extension
