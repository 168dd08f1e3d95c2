"""The PopTorch interface against a stored table of names, signatures and values."""

from __future__ import annotations

import ast
import inspect

import pytest

from tests.api.facts import (
    Row,
    expected_parameters,
    find,
    found_parameters,
    of_kind,
    rows,
)

FACTS = rows("poptorch")
# Parameters of our own, behind those of the original.
ADDED = {"poptorch.load": [("trust", "False")]}


@of_kind(FACTS, "function")
def test_signature(row: Row) -> None:
    function = find(row.path)
    function = getattr(function, "__func__", function)
    expected = expected_parameters(row.signature) + ADDED.get(row.path, [])
    assert found_parameters(function) == expected


@of_kind(FACTS, "class")
def test_class(row: Row) -> None:
    assert inspect.isclass(find(row.path))


@of_kind(FACTS, "property", "setter")
def test_property(row: Row) -> None:
    found = find(row.path)
    assert isinstance(found, property)
    assert row.kind == "property" or found.fset is not None


@of_kind(FACTS, "value")
def test_enumeration_value(row: Row) -> None:
    assert find(row.path).value == ast.literal_eval(row.signature)


def test_enumerations_have_no_other_members() -> None:
    expected = {row.path for row in FACTS if row.kind == "value"}
    kinds = {path.rpartition(".")[0] for path in expected}
    found = {f"{kind}.{name}" for kind in kinds for name in find(kind).__members__}
    assert found == expected


OPTIMISERS = ["SGD", "Adam", "AdamW", "RMSprop", "LAMB"]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_derive_from_torchs(name: str) -> None:
    torch_class = find(f"poptorch.optim.{name}").__bases__[1]
    assert torch_class.__module__.startswith("torch.optim")
