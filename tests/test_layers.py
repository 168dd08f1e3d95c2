"""The direction of imports, as data.

`MAY_IMPORT` is the whole architecture in one table: what a package may import from the
others. Imports inside functions, under TYPE_CHECKING and by `import_module("name")`
count like those at the top of a file.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tests.sources import (
    ROOT,
    SRC,
    Source,
    name_in_src,
    parse_source,
    sources_of_product,
)

BASE = frozenset(
    {
        "popple._version",
        "popple.errors",
        "popple.files",
        "popple.lazy",
        "popple.logs",
        "popple.plain",
        "popple.quick",
        "popple.text_table",
        "popple.units",
    }
)
# Names that capture and engine leave for each other in a framework's graph.
MARKS = frozenset({"popple.marks"})
DATA = BASE | {"popple.graph", "popple.target", "popple.program"}
FLOW = DATA | {"popple.place", "popple.plan", "popple.sim", "popple.report"}
CORE = FLOW | {
    "popple.advice",
    "popple.case",
    "popple.options",
    "popple.pipeline",
    "popple.record",
    "popple.session",
}
EVERYTHING = CORE | {
    "popple",
    "popple.marks",
    "popple.tensor_text",
    "popple.capture",
    "popple.device",
    "popple.distributed",
    "popple.engine",
    "popple.viewer",
}

# A package (or single module) and what it may import besides itself and the standard
# library. Whatever is missing here fails `test_every_package_has_a_row`.
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "popple._version": frozenset(),
    "popple.errors": frozenset(),
    "popple.lazy": frozenset(),
    "popple.logs": frozenset({"popple.errors"}),
    "popple.files": frozenset(),
    "popple.plain": frozenset(),
    "popple.quick": frozenset(),
    "popple.text_table": frozenset(),
    "popple.units": frozenset(),
    "popple.marks": frozenset(),
    "popple.report": BASE,
    # Traces of host programs are SQLite files too, coded as reports are.
    "popple.trace": BASE | {"popple.report"},
    "popple.graph": BASE,
    "popple.target": BASE,
    "popple.program": BASE,
    "popple.place": BASE | {"popple.graph"},
    "popple.plan": DATA,
    "popple.sim": BASE | {"popple.program", "popple.target"},
    "popple.options": BASE | {"popple.graph", "popple.plan"},
    "popple.case": BASE | {"popple.graph", "popple.options", "popple.target"},
    "popple.record": FLOW | {"popple.options"},
    "popple.pipeline": FLOW | {"popple.case", "popple.options", "popple.record"},
    # What to change of a program, by modelling it again.
    "popple.advice": FLOW
    | {"popple.case", "popple.options", "popple.pipeline", "popple.record"},
    # What all facades do with a captured program, whatever its framework.
    "popple.session": BASE
    | {
        "popple.case",
        "popple.graph",
        "popple.options",
        "popple.pipeline",
        "popple.target",
    },
    "popple": CORE,
    "popple.tensor_text": BASE,
    "popple.capture": BASE
    | MARKS
    | {"popple.graph", "popple.place", "popple.tensor_text"},
    # An engine runs what its framework's capture has traced.
    "popple.engine": BASE
    | MARKS
    | {
        "popple.capture",
        "popple.distributed",
        "popple.graph",
        "popple.pipeline",
        "popple.session",
    },
    # Knows no framework: what processes compute together is the engines' part.
    "popple.distributed": BASE,
    "popple.device": BASE | {"popple.target"},
    "popple.viewer": BASE | {"popple.report"},
    # What a notebook uses, and the tool that checks it; kernels ask for devices.
    "popple.notebook": BASE,
    # Of the facade only its start: `popple run` serves TensorFlow's names as Python's
    # own start does.
    "popple.tools": CORE
    | {
        "popple",
        "popple.device",
        "popple.distributed",
        "popple.notebook",
        "popple.viewer",
        "tensorflow_ipu",
    },
    # Its profiling is libpvti's.
    "poptorch": EVERYTHING | {"libpvti"},
    # These extend poptorch, so they are the facades that import another. poptorch knows
    # poptorch_geometric by name only, and loads it when a program uses torch_geometric.
    "poptorch_geometric": EVERYTHING | {"poptorch"},
    "popdist": EVERYTHING | {"poptorch"},
    # Its strategies ask popdist for the processes, its test helpers read reports as
    # users do.
    "tensorflow_ipu": EVERYTHING | {"popdist", "pva"},
    # Served as examples_utils where that is not installed.
    "ipu_examples_utils": BASE,
    # More layers and optimisers for programs of tensorflow_ipu.
    "ipu_tensorflow_addons": BASE | {"tensorflow_ipu"},
    # What monitoring programs and scripts ask about devices.
    "gcipuinfo": BASE | {"popple.device"},
    "poplar": BASE | {"popple.device", "popple.target"},
    # Horovod's names where there is no Horovod.
    "popple_horovod": BASE | {"popple.distributed", "popple.engine", "tensorflow_ipu"},
    "libpvti": BASE | {"popple.trace"},
    "popart": frozenset(),
    "pva": frozenset({"popple.report", "popple.trace"}),
}

# What a package knows as text only and imports when a program needs it: the other way
# round from MAY_IMPORT, since an extension imports what it extends.
LOADED_BY_NAME: Mapping[str, frozenset[str]] = {
    "poptorch": frozenset({"poptorch_geometric"}),
}

# How ARCHITECTURE.md says several packages at once.
GROUPS = ((EVERYTHING, "all of popple"), (CORE, "core"), (BASE, "base"))

TENSORFLOW_HOMES = (
    "ipu_tensorflow_addons",
    "popple.capture.tensorflow",
    "popple.engine.tensorflow",
    "popple_horovod",
    "tensorflow_ipu",
)

# Frameworks, and the only places that may import them.
FRAMEWORK_HOMES: Mapping[str, tuple[str, ...]] = {
    "torch": (
        "popple.capture.torch",
        "popple.engine.torch",
        "popple_horovod",
        "poptorch",
        "poptorch_geometric",
    ),
    "torch_geometric": ("poptorch_geometric",),
    "tensorflow": TENSORFLOW_HOMES,
    "tf_keras": TENSORFLOW_HOMES,
    "onnx": ("popple.capture.onnx",),
    "yaml": ("ipu_examples_utils",),
}

# A distribution -> what it is imported as, where that is another name.
IMPORT_NAMES = {
    "jupyter-client": "jupyter_client",
    "markdown-it-py": "markdown_it",
    "protobuf": "google",
    "pyyaml": "yaml",
}

FACADES = frozenset(p.parent.name for p in SRC.glob("*/__init__.py")) - {"popple"}


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def package_of(module: str) -> str:
    """The row a module belongs to: `popple.graph.text` -> `popple.graph`."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "popple" else parts[0]


def resolve_relative(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = source.module.split(".")
    keep = len(package) - node.level + source.is_package
    return ".".join([*package[:keep], *filter(None, [node.module])])


def literal_module(node: ast.Call) -> str | None:
    """The module named by `import_module("x")`, `LazyModule("x")`..., if literal."""
    if not is_import_call(node):
        return None
    value = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
    return value if isinstance(value, str) else None


def names_for_later(source: Source) -> set[str]:
    """Packages that a module knows as text, to import them when they are needed.

    Text counts in modules that import what a variable names.
    """
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    if not any(is_import_call(call) and not literal_module(call) for call in calls):
        return set()
    texts = {
        node.value
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    own = package_of(source.module)
    return {package_of(text) for text in texts if text in FACADES} - {own}


def is_import_call(node: ast.Call) -> bool:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else None
    called = node.func.id if isinstance(node.func, ast.Name) else called
    return called in ("import_module", "__import__", "LazyModule") and bool(node.args)


def is_module(name: str) -> bool:
    path = SRC.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imported_names(source: Source, node: ast.AST) -> list[str]:
    """The modules one statement or call imports."""
    if isinstance(node, ast.Import):
        return [name_in_src(alias.name) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = resolve_relative(source, node)
        full = [name_in_src(f"{base}.{alias.name}") for alias in node.names]
        return [name if is_module(name) else name_in_src(base) for name in full]
    literal = literal_module(node) if isinstance(node, ast.Call) else None
    return [name_in_src(literal)] if literal else []


def imports_of(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        yield from imported_names(source, node)


def package_edges() -> dict[str, set[str]]:
    """For every row of the tree: the rows it imports."""
    edges: dict[str, set[str]] = {}
    for source in sources_of_product():
        own = package_of(source.module)
        found = {package_of(name) for name in imports_of(source) if is_own(name)}
        edges.setdefault(own, set()).update(found - {own})
    return edges


def is_own(name: str) -> bool:
    return name.split(".")[0] in FACADES | {"popple"}


def find_cycle(edges: Mapping[str, set[str]]) -> list[str]:
    """Some cycle as a list of names, each importing the next, or an empty list."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def module_edges() -> dict[str, set[str]]:
    """For every module: the modules it imports (a package's own parts left out)."""
    return {
        source.module: {
            name
            for name in imports_of(source)
            if is_own(name) and not is_within(source.module, name)
        }
        for source in sources_of_product()
    }


def declared_distributions() -> set[str]:
    """What a user's installation can bring: the core and every extra but `dev`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lists = [project["dependencies"], *(extras[e] for e in extras if e != "dev")]
    found = {re.split(r"[^\w-]", line)[0] for lines in lists for line in lines}
    return {IMPORT_NAMES.get(name, name) for name in found}


def in_words(package: str) -> str:
    """What a package may import, as ARCHITECTURE.md says it."""
    row = MAY_IMPORT[package]
    found: list[str] = []
    for group, words in GROUPS:
        if group <= row:
            found.append(words)
            row -= group
    parts = sorted(name.removeprefix("popple.") for name in row if "popple." in name)
    others = sorted(f"`{name}`" for name in row if "popple." not in name)
    return ", ".join([*found, *parts, *others]) or "nothing"


def rows_of_architecture() -> dict[str, str]:
    """The packages of ARCHITECTURE.md's table, and what it says that they import."""
    found: dict[str, str] = {}
    for line in (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            found.update(dict.fromkeys(re.findall(r"`([\w.]+)`", cells[0]), cells[2]))
    return found


def test_every_package_has_a_row() -> None:
    assert {package_of(s.module) for s in sources_of_product()} == set(MAY_IMPORT)


def test_the_architecture_says_what_packages_import() -> None:
    assert rows_of_architecture() == {name: in_words(name) for name in MAY_IMPORT}


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_package_imports_only_what_its_row_allows(package: str) -> None:
    assert package_edges().get(package, set()) <= MAY_IMPORT[package]


def test_packages_known_as_text_are_listed() -> None:
    found: dict[str, set[str]] = {}
    for source in sources_of_product():
        own = package_of(source.module)
        found.setdefault(own, set()).update(names_for_later(source) - MAY_IMPORT[own])
    assert {own: names for own, names in found.items() if names} == LOADED_BY_NAME


def test_the_table_itself_has_no_cycle() -> None:
    assert find_cycle({name: set(row) for name, row in MAY_IMPORT.items()}) == []


def test_modules_have_no_cycle() -> None:
    assert find_cycle(module_edges()) == []


def test_frameworks_stay_at_home() -> None:
    strays = [
        f"{source.module} imports {name}"
        for source in sources_of_product()
        for name in imports_of(source)
        for home in [FRAMEWORK_HOMES.get(name.split(".")[0])]
        if home and not any(is_within(source.module, place) for place in home)
    ]
    assert strays == []


def test_third_party_imports_are_declared() -> None:
    known = sys.stdlib_module_names | FACADES | {"popple"} | declared_distributions()
    imported = {
        name.split(".")[0]
        for source in sources_of_product()
        for name in imports_of(source)
    }
    assert imported - known == set()


@pytest.mark.parametrize("module", ["popple", "popple.report", "popple.tools.cli"])
def test_no_framework_is_loaded_by(module: str) -> None:
    loaded = f"set(sys.modules) & set({sorted(FRAMEWORK_HOMES)})"
    code = f"import sys, {module}; print(*sorted({loaded}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")


# The reader of imports is code too: it must see every way of importing.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import popple.graph", ["popple.graph"]),
        ("def f():\n    from popple.graph import Graph", ["popple.graph"]),
        ("from popple import graph", ["popple.graph"]),
        ("from . import verify", ["popple.graph.verify"]),
        ("from ..errors import GraphError", ["popple.errors"]),
        ("if TYPE_CHECKING:\n    import torch", ["torch"]),
        ("importlib.import_module('torch.fx')", ["torch.fx"]),
        ("__import__('torch')", ["torch"]),
        ("plan = LazyModule('popple.plan')", ["popple.plan"]),
        ("find_spec('torch')", []),
        ("from tensorflow.python import ipu", ["tensorflow_ipu.ipu"]),
        ("from keras.ipu import layers", ["tensorflow_ipu.keras_ipu.layers"]),
    ],
)
def test_imports_are_seen(text: str, expected: list[str]) -> None:
    source = Source("popple.graph.text", SRC / "x.py", text, ast.parse(text))
    assert list(imports_of(source)) == expected


def test_packages_known_as_text_are_seen() -> None:
    for text, expected in (
        ("NAMES = ['pva']\nimport_module(NAMES[0])", {"pva"}),
        ("NAMES = ['pva']\nimport_module('json')", set()),
    ):
        source = Source("popple.graph.text", SRC / "x.py", text, ast.parse(text))
        assert names_for_later(source) == expected


def test_a_cycle_is_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b"}}
    assert find_cycle(edges) in (["b", "c", "b"], ["c", "b", "c"])


def test_a_cycle_is_told_in_the_direction_of_imports() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a"}}
    first, *rest = find_cycle(edges)[:-1]
    assert rest[0] in edges[first]


def test_a_package_resolves_its_own_dot() -> None:
    source = parse_source(SRC / "popple/graph/__init__.py", SRC)
    node = ast.ImportFrom("opdef", [ast.alias("OpDef")], 1)
    assert resolve_relative(source, node) == "popple.graph.opdef"
