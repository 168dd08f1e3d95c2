"""Keras layers and optimisers for the IPU."""

from . import layers, optimizers

__all__ = ["layers", "optimizers"]
