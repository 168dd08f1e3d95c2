"""Host transfers that go on while the IPU computes: which inputs and outputs may.

Marks in the graph say which; `_model.checks` looks at them once the model is traced.
"""

from __future__ import annotations

from typing import Any

from .._arguments.structure import flatten_tensors, rebuild
from .._errors import Error, check
from .._tracing.trace import isRunningOnIpu
from ..enums import OverlapMode

__all__ = [
    "INPUT_MARK",
    "OUTPUT_MARK",
    "set_overlap_for_input",
    "set_overlap_for_output",
]

INPUT_MARK = "overlap_input"
OUTPUT_MARK = "overlap_output"


def set_overlap_for_input(input_tensors: Any, mode: OverlapMode) -> Any:
    """The same inputs, sent while the IPU computes as far as `mode` says.

    They must be inputs of the model and used through what is returned only. The
    options must set I/O tiles aside.
    """
    return _marked(input_tensors, mode, INPUT_MARK)


def set_overlap_for_output(output_tensors: Any, mode: OverlapMode) -> Any:
    """The same outputs, sent while the IPU computes as far as `mode` says.

    They must be returned by the model, once each. The options must set I/O tiles
    aside.
    """
    return _marked(output_tensors, mode, OUTPUT_MARK)


def _marked(structure: Any, mode: OverlapMode, kind: str) -> Any:
    check(isinstance(mode, OverlapMode), "mode must be a poptorch.OverlapMode.")
    tensors = flatten_tensors(structure)
    if not tensors:
        raise Error(f"There is no tensor to overlap in {type(structure).__name__}.")
    if not isRunningOnIpu():
        return structure
    from popple.capture.torch import mark

    return rebuild(structure, [mark(tensor, kind, mode.value) for tensor in tensors])
