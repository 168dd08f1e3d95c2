"""Synthetic data: what feeds carry when TF_POPLAR_FLAGS asks for no transfers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from . import _flags


def outfeeds() -> bool:
    """Whether nothing leaves the device."""
    return _flags.uses_synthetic_data(_flags.Category.OUTFEED)


def for_infeed(dataset: Any) -> Any:
    """The data set itself, or an endless one made up on the device."""
    if not _flags.uses_synthetic_data(_flags.Category.INFEED):
        return dataset
    initializer = _flags.read().synthetic_data_initializer or _flags.Initializer()
    element = tf.nest.map_structure(
        lambda spec: _filled(spec, initializer), dataset.element_spec
    )
    return tf.data.Dataset.from_tensors(element).repeat()


def _filled(spec: Any, initializer: _flags.Initializer) -> Any:
    if not initializer.distribution:
        return tf.cast(tf.fill(spec.shape, initializer.constant), spec.dtype)
    draw = (
        tf.random.normal if initializer.distribution == "normal" else tf.random.uniform
    )
    return tf.cast(draw(spec.shape), spec.dtype)
