"""Public names: listed once, complete, importable, documented.

For every public package `__all__` names exactly what its `__init__.py` defines or
imports under a public name. (That the lists are sorted is ruff's business, RUF022.)
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.sources import Source, imported_name, sources_of_product

PUBLIC_PACKAGES = {
    imported_name(source.module): source
    for source in sources_of_product()
    if source.is_package and not any(p[0] == "_" for p in source.module.split("."))
}

OWN_ROOTS = {name.partition(".")[0] for name in PUBLIC_PACKAGES}


def statements_of(source: Source) -> Iterator[ast.stmt]:
    """Top-level statements; those under `if TYPE_CHECKING` stand for lazy imports."""
    for node in source.tree.body:
        yield from node.body if isinstance(node, ast.If) else [node]


def is_foreign(node: ast.stmt) -> bool:
    """Whether a statement imports somebody else's names, which we do not export."""
    if isinstance(node, ast.ImportFrom) and not node.level:
        return (node.module or "").partition(".")[0] not in OWN_ROOTS
    return isinstance(node, ast.Import)


def bound_names(node: ast.stmt) -> list[str]:
    """The names one statement binds."""
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def public_names(source: Source) -> set[str]:
    """What `__init__.py` defines, or imports from ourselves, without an underscore."""
    bound = (bound_names(n) for n in statements_of(source) if not is_foreign(n))
    return {name for names in bound for name in names if not name.startswith("_")}


def is_documented(thing: object) -> bool:
    """Whether a class, function or module says what it is for; data need not."""
    if inspect.isclass(thing):
        return bool(thing.__doc__) and not has_generated_docstring(thing)
    is_described = inspect.isroutine(thing) or inspect.ismodule(thing)
    return bool(thing.__doc__) if is_described else True


def has_generated_docstring(cls: type) -> bool:
    """Whether the docstring is only the signature that `dataclass` makes up."""
    return (cls.__doc__ or "").startswith(f"{cls.__name__}(")


@pytest.fixture(params=sorted(PUBLIC_PACKAGES))
def package(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(request.param)


def test_all_is_complete(package: ModuleType) -> None:
    expected = public_names(PUBLIC_PACKAGES[package.__name__])
    assert set(getattr(package, "__all__", [])) - {"__version__"} == expected


def test_all_has_no_duplicates(package: ModuleType) -> None:
    names = getattr(package, "__all__", [])
    assert len(names) == len(set(names))


def test_every_public_name_is_documented(package: ModuleType) -> None:
    names = getattr(package, "__all__", [])
    assert [n for n in names if not is_documented(getattr(package, n))] == []
