"""The PopTorch interface against a stored table of names, signatures and values.

`poptorch.csv` holds one fact per row.
"""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TABLE = Path(__file__).with_name("poptorch.csv")


class Row(NamedTuple):
    """One fact: where a name is, what it is, how it is called."""

    module: str
    name: str
    kind: str
    signature: str

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def rows() -> list[Row]:
    with TABLE.open(newline="") as file:
        return [Row(**fields) for fields in csv.DictReader(file)]


def find(path: str) -> Any:
    """The object a dotted path names; AttributeError or ImportError if none."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            thing = inspect.getattr_static(thing, part)
        return thing
    raise ImportError(path)


def expected_parameters(signature: str) -> list[tuple[str, str]]:
    """Names and defaults as text: "(self, x, n=1)" -> [("self", ""), ...]."""
    arguments = ast.parse(f"def f{signature}: ...").body[0].args  # pyright: ignore
    names = [argument.arg for argument in arguments.args]
    defaults = [ast.unparse(default) for default in arguments.defaults]
    pairs = list(
        zip(names, [""] * (len(names) - len(defaults)) + defaults, strict=True)
    )
    if arguments.vararg:
        pairs.append((f"*{arguments.vararg.arg}", ""))
    pairs += [
        (argument.arg, ast.unparse(default) if default else "")
        for argument, default in zip(
            arguments.kwonlyargs, arguments.kw_defaults, strict=True
        )
    ]
    if arguments.kwarg:
        pairs.append((f"**{arguments.kwarg.arg}", ""))
    return pairs


def found_parameters(function: Any) -> list[tuple[str, str]]:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        (f"{stars.get(p.kind, '')}{p.name}", default_text(p.default))
        for p in inspect.signature(function).parameters.values()
    ]


def default_text(default: Any) -> str:
    if default is inspect.Parameter.empty:
        return ""
    is_member = hasattr(type(default), "__members__")
    return f"{type(default).__name__}.{default.name}" if is_member else repr(default)


def of_kind(*kinds: str) -> Any:
    chosen = [row for row in rows() if row.kind in kinds]
    return pytest.mark.parametrize("row", chosen, ids=lambda row: row.path)


@of_kind("function")
def test_signature(row: Row) -> None:
    function = find(row.path)
    function = getattr(function, "__func__", function)
    assert found_parameters(function) == expected_parameters(row.signature)


@of_kind("class")
def test_class(row: Row) -> None:
    assert inspect.isclass(find(row.path))


@of_kind("property", "setter")
def test_property(row: Row) -> None:
    found = find(row.path)
    assert isinstance(found, property)
    assert row.kind == "property" or found.fset is not None


@of_kind("value")
def test_enumeration_value(row: Row) -> None:
    assert find(row.path).value == ast.literal_eval(row.signature)


def test_enumerations_have_no_other_members() -> None:
    expected = {row.path for row in rows() if row.kind == "value"}
    kinds = {path.rpartition(".")[0] for path in expected}
    found = {f"{kind}.{name}" for kind in kinds for name in find(kind).__members__}
    assert found == expected


OPTIMISERS = ["SGD", "Adam", "AdamW", "RMSprop", "LAMB"]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_derive_from_torchs(name: str) -> None:
    torch_class = find(f"poptorch.optim.{name}").__bases__[1]
    assert torch_class.__module__.startswith("torch.optim")
