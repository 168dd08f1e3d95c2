"""Options that tune operators on the device: they change no value, but can be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import _errors

_PROPORTION = "availableMemoryProportion"


def check_options(*options: Mapping[str, Any] | None) -> None:
    """Refuse a share of memory below nothing, as the device's libraries do."""
    for given in options:
        proportion = (given or {}).get(_PROPORTION, 0)
        if float(proportion) < 0:
            raise _errors.error(
                tf.errors.InternalError,
                "[Poplar][Build graph] invalid_option: Invalid value"
                f" '{proportion}' for option '{_PROPORTION}'. Value must be greater"
                " than or equal to 0.",
            )
