"""Transformations of data sets."""

from . import dataset_ops

__all__ = ["dataset_ops"]
