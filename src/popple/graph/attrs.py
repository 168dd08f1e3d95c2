"""Attributes: what an op computes beyond its operands."""

from __future__ import annotations

Attr = bool | int | float | str | tuple[int, ...]
"""The value of an attribute."""
