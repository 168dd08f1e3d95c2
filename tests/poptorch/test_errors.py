"""Exceptions of the PopTorch interface: their fields and texts."""

from __future__ import annotations

import pickle

import pytest

import poptorch
from poptorch._errors import check


def test_python_error_names_its_type() -> None:
    error = poptorch.Error("no loss")
    assert str(error) == "'poptorch_py_error': no loss"
    assert (error.message, error.type, error.location) == (
        "no loss",
        "poptorch_py_error",
        "",
    )


def test_location_is_in_the_text_but_not_in_the_message() -> None:
    error = poptorch.Error("bad", location="  [0] outer", source_line="a.cpp:3")
    assert str(error).splitlines() == [
        "In a.cpp:3: 'poptorch_py_error': bad",
        "Error raised in:",
        "  [0] outer",
    ]
    assert "outer" not in error.message


def test_recoverable_error_names_the_action() -> None:
    error = poptorch.RecoverableError("link down", recovery_action="FULL_RESET")
    assert error.recovery_action == "FULL_RESET"
    assert "Recovery action required: FULL_RESET" in str(error)
    assert error.type == "poplar_recoverable_runtime_error"


@pytest.mark.parametrize(
    "kind", [poptorch.RecoverableError, poptorch.UnrecoverableError]
)
def test_device_errors_are_errors(kind: type[Exception]) -> None:
    assert issubclass(kind, poptorch.Error)


def test_errors_survive_pickling() -> None:
    error = poptorch.RecoverableError("x", recovery_action="IPU_RESET", location="here")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.message) == (str(error), "x")
    assert copy.recovery_action == "IPU_RESET"


def test_config_file_error_is_no_poptorch_error() -> None:
    assert not issubclass(poptorch.ConfigFileError, poptorch.Error)
    assert poptorch.options.ConfigFileError is poptorch.ConfigFileError


def test_check_raises_assertion_error() -> None:
    check(1, "unused")
    with pytest.raises(AssertionError, match="so not"):
        check([], "so not")
