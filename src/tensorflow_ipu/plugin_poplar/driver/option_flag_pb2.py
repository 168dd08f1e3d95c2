"""Options of Poplar as messages: a name and a value, both text."""

from __future__ import annotations

from typing import Any

from . import _schema

PoplarOptionFlag: Any
PoplarOptionFlags: Any

_schema.declare(
    globals(),
    "option_flag.proto",
    """
    message PoplarOptionFlag
      option string 1
      value string 2
    message PoplarOptionFlags
      flags PoplarOptionFlag* 1
    """,
)
