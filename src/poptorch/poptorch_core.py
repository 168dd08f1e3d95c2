"""Names that programs and tests import from PopTorch's compiled part.

`_throwTestError` raises each kind of error as the back end of the original would, so
that programs can test what they do about it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from ._errors import Error, RecoverableError, UnrecoverableError
from ._options.session_options import check_session_options
from ._tracing.trace import isRunningOnIpu

__all__ = [
    "Error",
    "RecoverableError",
    "TestErrorType",
    "UnrecoverableError",
    "isCompilingWithDispatcher",
]

_LOCATION = "throwTestError::bottomLevel\nthrowTestError::topLevel"


class TestErrorType(enum.Enum):
    """Kinds of error that `_throwTestError` can raise."""

    __test__ = False  # it is no test class, whatever its name

    Poptorch = 0
    Popart = 1
    PopartInternal = 2
    Poplibs = 3
    PoplarUnrecoverable = 4
    PoplarUnknown = 5
    PoplarRecoverableFullReset = 6
    PoplarLinkError = 7


_KINDS = {
    TestErrorType.Poptorch: ("poptorch_cpp_error", "This is a test error."),
    TestErrorType.Popart: ("popart_exception", "This is a test error."),
    TestErrorType.PopartInternal: (
        "popart_internal_exception",
        "This is a test error.",
    ),
    TestErrorType.Poplibs: ("poplibs_exception", "This is a test error."),
    TestErrorType.PoplarUnknown: (
        "poplar_unknown_runtime_error",
        "This is a test error.",
    ),
    TestErrorType.PoplarLinkError: ("poplar_link_error", "-lfoo not found"),
}


def isCompilingWithDispatcher() -> bool:
    """Whether a model is being traced."""
    return isRunningOnIpu()


def _validateOptions(options: Mapping[str, Any]) -> None:
    """Error for an option of `Options.toDict` that does not exist; logs the others."""
    check_session_options(options)


def _throwTestError(error_type: TestErrorType) -> None:
    """Raise an error of this kind."""
    if error_type is TestErrorType.PoplarRecoverableFullReset:
        raise RecoverableError(
            "This is a test error.", recovery_action="FULL_RESET", location=_LOCATION
        )
    if error_type is TestErrorType.PoplarUnrecoverable:
        raise UnrecoverableError(
            "This is a test error.",
            type="poplar_unrecoverable_runtime_error",
            location=_LOCATION,
        )
    kind, message = _KINDS[error_type]
    raise Error(message, type=kind, location=_LOCATION)
