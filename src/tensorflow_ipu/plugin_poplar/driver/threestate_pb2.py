"""Off, on, or left to the compiler."""

from __future__ import annotations

from typing import Any

from . import _schema

ThreeState: Any
THREESTATE_OFF: int
THREESTATE_ON: int
THREESTATE_UNDEFINED: int

_schema.declare(
    globals(),
    "threestate.proto",
    """
    enum ThreeState
      THREESTATE_OFF THREESTATE_ON THREESTATE_UNDEFINED
    """,
)
