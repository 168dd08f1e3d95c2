"""Layers and optimisers for TensorFlow on the IPU: `keras`, and `v1` for graphs."""

from . import keras, v1

__all__ = ["keras", "v1"]
