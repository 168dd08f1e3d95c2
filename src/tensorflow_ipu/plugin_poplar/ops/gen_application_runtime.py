"""Raw operators that run executables; they read the file when they run.

Compiling has no raw operator here; asking for it says what to use instead.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow.python.ipu._executables import executable_files
from tensorflow.python.ipu._executables.engine import ENGINES

from . import _absent, _host

Tensor = Any


def application_runtime(
    inputs: Sequence[Tensor],
    filename: Tensor,
    engine_name: str,
    timeout_us: int = 5000,
    name: str | None = None,
) -> Tensor:
    """Start an executable, as engine `engine_name`; an anchor for the calls.

    `inputs` are in the order of the arguments of the program. The time limit is for
    pipelines that wait for a batch on the device; here every batch is answered at once.
    """
    del timeout_us

    def start(path: Any, *arrays: Any) -> list[Any]:
        executable = executable_files.read(os.fsdecode(np.asarray(path).item()))
        ENGINES.get(engine_name, executable).start(*arrays)
        return [np.int32(0)]

    with tf.name_scope(name or "ApplicationRuntime"):
        path = tf.convert_to_tensor(filename, tf.string)
        (anchor,) = _host.computed(start, [path, *inputs], [tf.int32])
    anchor.set_shape([])
    return anchor


def application_call(
    infeeds: Sequence[Tensor],
    anchor: Tensor,
    outfeed_types: Sequence[Any],
    engine_name: str,
    name: str | None = None,
) -> list[Tensor]:
    """The results of a started executable for one batch."""

    def call(_: Any, *arrays: Any) -> list[Any]:
        return ENGINES.running(engine_name).call(*arrays)

    with tf.name_scope(name or "ApplicationCall"):
        return _host.computed(call, [anchor, *infeeds], outfeed_types)


__getattr__ = _absent.explain(
    __name__,
    {
        "ipu_application_compile": "ops.application_compile_op",
        "": "ops.embedded_runtime",
    },
)
