"""Data sets."""

from . import ops

__all__ = ["ops"]
