"""Automatic differentiation as IPU programs use it."""

from . import backprop

__all__ = ["backprop"]
