"""Layers for graphs of TensorFlow 1."""

from . import layers

__all__ = ["layers"]
