"""Options that recurrent layers take for themselves, handed to the planner."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow import planned
from popple.graph import render_notes

from .op_options import notes_of

__all__ = ["tuned"]

_Options = Mapping[str, Any] | None


def tuned(
    partials_dtype: Any = tf.float32,
    options: _Options = None,
    options_bwd: _Options = None,
    available_memory_proportion_fwd: float | None = None,
    available_memory_proportion_bwd: float | None = None,
) -> contextlib.AbstractContextManager[None]:
    """Recurrent layers built inside are planned as these options say, each way."""
    is_half = tf.as_dtype(partials_dtype) == tf.float16
    forward, backward = (
        notes_of(
            {
                "partialsType": "half" if is_half else "float",
                "availableMemoryProportion": proportion,
                **(given or {}),
            }
        )
        for given, proportion in (
            (options, available_memory_proportion_fwd),
            (options_bwd, available_memory_proportion_bwd),
        )
    )
    return planned(render_notes(forward), render_notes(backward))
