"""The TensorFlow and Keras interfaces for the IPU against tables of their names.

Arguments that collect what is left may be called anything, and a function may have one
that the table has not: names of earlier releases are still accepted.
"""

from __future__ import annotations

import ast
import enum
import inspect
from typing import Any

import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("keras.ipu")  # makes the program one for the IPU

from tests.api.facts import (
    Row,
    expected_parameters,
    find,
    found_parameters,
    of_kind,
    rows,
)

Parameters = list[tuple[str, str]]
TABLES = ("tensorflow_ipu", "keras_ipu")
FACTS = [row for table in TABLES for row in rows(table)]
# They take arguments of older releases too.
WIDER = (
    "tensorflow.python.ipu.distributed.host_collective_ops.allreduce",
    "tensorflow.python.ipu.ipu_infeed_queue.IPUInfeedQueue.__init__",
    "tensorflow.python.ipu.ipu_strategy.IPUStrategyV1.experimental_run_v2",
)


def is_double_star(parameter: tuple[str, str]) -> bool:
    return parameter[0].startswith("**")


def without_names_of_rest(parameters: Parameters) -> Parameters:
    return [("*" * name.count("*") or name, text) for name, text in parameters]


@of_kind(FACTS, "function")
def test_signature(row: Row) -> None:
    function = find(row.path)
    expected = expected_parameters(row.signature)
    found = found_parameters(getattr(function, "__func__", function))
    if not any(map(is_double_star, expected)):
        found = [parameter for parameter in found if not is_double_star(parameter)]
    if row.path in WIDER:
        named = [name for name, _ in expected if not name.startswith("*")]
        assert [name for name, _ in found][: len(named)] == named
        return
    assert without_names_of_rest(found) == without_names_of_rest(expected)


@of_kind(FACTS, "class")
def test_class(row: Row) -> None:
    assert inspect.isclass(find(row.path))


def is_attribute(owner: Any, name: str) -> bool:
    """Whether instances have an attribute of that name, to read and to write."""
    return any(name in inspect.get_annotations(cls) for cls in owner.__mro__)


@of_kind(FACTS, "property", "setter")
def test_property(row: Row) -> None:
    owner, _, name = row.path.rpartition(".")
    if is_attribute(find(owner), name):
        return
    found = find(row.path)
    assert inspect.isdatadescriptor(found)
    assert row.kind == "property" or getattr(found, "fset", found) is not None


@of_kind(FACTS, "value")
def test_value(row: Row) -> None:
    found = find(row.path)
    value = found.value if isinstance(found, enum.Enum) else found
    assert value == ast.literal_eval(row.signature)


def test_enumerations_have_no_other_members() -> None:
    expected = {row.path for row in FACTS if row.kind == "value"}
    owners = {path.rpartition(".")[0] for path in expected}
    kinds = [owner for owner in owners if issubclass(find(owner), enum.Enum)]
    found = {f"{kind}.{name}" for kind in kinds for name in find(kind).__members__}
    assert found <= expected
