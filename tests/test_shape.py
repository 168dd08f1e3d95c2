"""The shape of the code: sizes, hints, docstrings, and things that must not appear.

The limits are the ones CONTRIBUTING.md names. A limit on a distribution (median, 95th
percentile) speaks about the whole product; a limit on a maximum names the offenders.
"""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.sources import SRC, Source, sources_of_product, sources_of_tests

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

# Functions above 60 code lines, by full name. An entry whose function has shrunk (or
# gone) fails the test, so the list only gets shorter.
LONG_FUNCTIONS: frozenset[str] = frozenset()

# Where reading the environment is part of the job: fixed names, process launch, CLI.
ENVIRONMENT_READERS = (
    "popple.tools",
    "popple.distributed",
    "popple.session.settings",
    "popple.device.environment",
)

# What users call on a wrapped model: over fifty documented methods, one state.
LONG_CLASSES = {"poptorch._executor.PoplarExecutor"}

DECISIONS = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.Assert,
    ast.comprehension,
    ast.match_case,
)


def percentile_95(values: list[int]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def functions_of(source: Source) -> Iterator[tuple[str, Function]]:
    """Every function with its full name, methods and nested ones included."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            name = f"{prefix}.{getattr(child, 'name', '')}".rstrip(".")
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, child
            yield from visit(child, name if hasattr(child, "name") else prefix)

    yield from visit(source.tree, source.module)


def classes_of(source: Source) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef))


def docstring_lines(node: ast.AST) -> set[int]:
    """Lines of the docstrings in a function, of nested functions and classes too."""
    owners = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    lines: set[int] = set()
    for owner in ast.walk(node):
        if isinstance(owner, owners) and ast.get_docstring(owner, clean=False):
            first = owner.body[0]
            lines.update(range(first.lineno, (first.end_lineno or 0) + 1))
    return lines


def is_code(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def code_lines(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function but for blanks, comments and docstrings."""
    texts = source.text.splitlines()
    span = range(node.lineno, (node.end_lineno or 0) + 1)
    return sum(is_code(texts[n - 1]) for n in set(span) - docstring_lines(node))


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions nested in it."""
    pending: list[ast.AST] = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))


def complexity(function: Function) -> int:
    """Cyclomatic complexity: one, and one more for each way to branch."""
    branches = 0
    for node in own_nodes(function):
        branches += isinstance(node, DECISIONS)
        branches += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        branches += len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return 1 + branches


def unhinted(function: Function) -> list[str]:
    """The parameters (or `return`) of a function that carry no hint."""
    spec = function.args
    named = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    starred = [arg for arg in (spec.vararg, spec.kwarg) if arg]
    bare = [arg.arg for arg in [*named, *starred] if arg.annotation is None]
    result = [] if function.returns else ["return"]
    return [name for name in bare if name not in ("self", "cls")] + result


def functions_of_product() -> list[tuple[str, Source, Function]]:
    return [(n, s, f) for s in sources_of_product() for n, f in functions_of(s)]


def spans_of_classes() -> dict[str, int]:
    return {
        f"{s.module}.{c.name}": (c.end_lineno or 0) - c.lineno + 1
        for s in sources_of_product()
        for c in classes_of(s)
    }


def lengths_of_files() -> dict[str, int]:
    return {s.module: len(s.text.splitlines()) for s in sources_of_product()}


def offenders(matches: Callable[[Source, ast.AST], bool]) -> list[str]:
    """`file:line` of every node in the product for which `matches` holds."""
    return [
        f"{source.path.relative_to(SRC)}:{getattr(node, 'lineno', 0)}"
        for source in sources_of_product()
        for node in ast.walk(source.tree)
        if matches(source, node)
    ]


def test_function_lengths() -> None:
    lengths = [code_lines(s, f) for _, s, f in functions_of_product()]
    assert statistics.median(lengths) <= 8
    assert percentile_95(lengths) <= 35


def test_long_functions_are_the_listed_ones() -> None:
    found = {n for n, s, f in functions_of_product() if code_lines(s, f) > 60}
    assert found == LONG_FUNCTIONS


def test_complexity() -> None:
    found = [complexity(function) for _, _, function in functions_of_product()]
    assert percentile_95(found) <= 8


def test_class_spans() -> None:
    spans = spans_of_classes()
    assert statistics.median(spans.values()) <= 30
    assert {name for name, span in spans.items() if span > 300} == LONG_CLASSES


def test_file_lengths() -> None:
    lengths = lengths_of_files()
    assert statistics.median(lengths.values()) <= 200
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_everything_is_hinted() -> None:
    found = {name: unhinted(function) for name, _, function in functions_of_product()}
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [s.module for s in sources_of_product() if not ast.get_docstring(s.tree)]
    assert silent == []


def test_every_public_class_says_what_it_is_for() -> None:
    silent = [
        f"{source.module}.{node.name}"
        for source in sources_of_product()
        for node in classes_of(source)
        if not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert silent == []


def test_comments_are_few() -> None:
    lines = [line for s in sources_of_product() for line in s.text.splitlines()]
    written = [line for line in lines if line.strip()]
    share = sum(line.lstrip().startswith("#") for line in written) / len(written)
    assert share <= 0.10


def test_no_global_statement() -> None:
    assert offenders(lambda _, node: isinstance(node, ast.Global)) == []


def is_environment_read(source: Source, node: ast.AST) -> bool:
    home = source.module
    if not home.startswith("popple") or home.startswith(ENVIRONMENT_READERS):
        return False
    if isinstance(node, ast.ImportFrom) and node.module == "os":
        return any(alias.name in ("environ", "getenv") for alias in node.names)
    return (
        isinstance(node, ast.Attribute)
        and node.attr in ("environ", "environb", "getenv")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    )


def test_the_environment_is_read_in_few_places() -> None:
    assert offenders(is_environment_read) == []


def test_no_open_ends() -> None:
    word = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
    everything = [*sources_of_product(), *sources_of_tests()]
    assert [str(s.path) for s in everything if word.search(s.text)] == []


def test_tests_are_short_and_do_not_wait() -> None:
    tests = [
        (source, function)
        for source in sources_of_tests()
        for name, function in functions_of(source)
        if name.rpartition(".")[2].startswith("test_")
    ]
    assert statistics.median(code_lines(s, f) for s, f in tests) <= 12
    # Programs that tests start may take their time.
    modules = [s for s in sources_of_tests() if s.path.name.startswith("test_")]
    sleeping = [s.module for s in modules if "time.sl" + "eep(" in s.text]
    assert sleeping == []


# The measures are code too.


def measure(text: str) -> tuple[Source, Function]:
    source = Source("sample", SRC / "sample.py", text, ast.parse(text))
    return source, next(functions_of(source))[1]


def test_docstrings_blanks_and_comments_are_no_code() -> None:
    text = 'def f() -> int:\n    """Say.\n\n    More."""\n\n    # why\n    return 1\n'
    assert code_lines(*measure(text)) == 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 1", 1),
        ("return 1 if x and y else 2", 3),
        ("for a in x:\n        if a: pass", 3),
        ("return [a for a in x if a]", 3),
        ("def g():\n        if x: pass", 1),
    ],
)
def test_complexity_counts_branches(body: str, expected: int) -> None:
    _, function = measure(f"def f(x, y):\n    {body}\n")
    assert complexity(function) == expected


def test_missing_hints_are_named() -> None:
    _, function = measure("def f(self, a, b: int, *c, **d): pass\n")
    assert unhinted(function) == ["a", "c", "d", "return"]


@pytest.mark.parametrize("text", ["os.environ['A']", "os.getenv('A')"])
def test_environment_reads_are_seen(text: str) -> None:
    tree = ast.parse(text)
    source = Source("popple.graph.x", SRC / "x.py", text, tree)
    assert any(is_environment_read(source, node) for node in ast.walk(tree))
