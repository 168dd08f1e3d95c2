"""Former names of NumPy: programs find them, libraries do not."""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np
import pytest

from popple.session import former_numpy

ASK = "def ask(numpy, name): return getattr(numpy, name)"


def asked_from(file: str, name: str) -> Any:
    """What code of a file gets when it asks NumPy for a name."""
    module = types.ModuleType("asking")
    exec(compile(ASK, file, "exec"), vars(module))
    return module.ask(np, name)


@pytest.fixture(autouse=True)
def served() -> None:
    former_numpy.serve_former_names()
    former_numpy.serve_former_names()  # which changes nothing


@pytest.mark.parametrize(
    ("name", "value"),
    [("Inf", math.inf), ("int", int), ("float_", np.float64), ("product", np.prod)],
)
def test_programs_get_what_the_name_stood_for(name: str, value: Any) -> None:
    with pytest.warns(DeprecationWarning, match=f"numpy.{name} is gone"):
        assert asked_from("train.py", name) == value


def test_libraries_learn_which_numpy_there_is() -> None:
    with pytest.raises(AttributeError):
        asked_from(np.__file__, "Inf")


def test_names_that_never_were_are_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'infinite'"):
        asked_from("train.py", "infinite")


def test_the_table_serves_nothing_that_numpy_lacks() -> None:
    for successor in former_numpy._RENAMED.values():
        assert hasattr(np, successor)
