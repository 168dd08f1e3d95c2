"""What holds for every tool: help, version, exit status, JSON of text, quick start."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from popple._version import __version__
from popple.device import Pod, find_machine
from popple.tools.gc.tool import as_text, render_number
from tests.sources import ROOT, SRC
from tests.tools.gc.conftest import Run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "scripts"
]
TOOLS = {
    name: target.removeprefix("popple.tools.gc.").removesuffix(":main")
    for name, target in SCRIPTS.items()
    if target.startswith("popple.tools.gc.")
}
JSON_TOOLS = [
    "exchangetest",
    "exchangewritetest",
    "flops",
    "hostsynclatencytest",
    "hosttraffictest",
    "inventory",
    "iputraffictest",
    "links",
    "memorytest",
    "monitor",
]
EXCLUSIVE = ["memorytest", "exchangetest", "hosttraffictest", "flops", "reset"]


def test_every_tool_has_an_entry_point() -> None:
    folder = SRC / "popple" / "tools" / "gc"
    files = {
        path.stem
        for path in folder.glob("*.py")
        if "TOOL = " in path.read_text(encoding="utf-8")
    }
    assert set(TOOLS.values()) == files
    assert len(TOOLS) == 17


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_help_is_a_manual_page(name: str, run: Run) -> None:
    status, out, _ = run(TOOLS[name], "--help")
    headings = [line for line in out.splitlines() if line and line[0] != " "]
    assert status == 0
    assert headings == [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "EXIT STATUS",
        "EXAMPLES",
    ]
    assert out.splitlines()[1].startswith(f"    {name} - ")
    assert max(map(len, out.splitlines())) <= 88


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_version(name: str, run: Run) -> None:
    status, out, _ = run(TOOLS[name], "--version")
    assert (status, out) == (0, f"{name} (popple) {__version__}\n")


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_an_unknown_option_is_bad_usage(name: str, run: Run) -> None:
    # gc-info needs a command before it looks at the rest.
    more = ["-l"] if name == "gc-info" else []
    status, _, err = run(TOOLS[name], "--no-such-option", *more)
    assert status == 2
    assert "--no-such-option" in err


def scalars_of(data: object) -> Iterator[object]:
    if isinstance(data, dict):
        for value in data.values():
            yield from scalars_of(value)
    elif isinstance(data, list):
        for value in data:
            yield from scalars_of(value)
    else:
        yield data


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", JSON_TOOLS)
def test_all_scalars_of_json_are_text(name: str, run_json: Callable[..., Any]) -> None:
    found = list(scalars_of(run_json(name)))
    assert found
    assert {type(value) for value in found} == {str}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", EXCLUSIVE)
def test_a_device_in_use_is_refused_with_its_holder(name: str, run: Run) -> None:
    with Pod(find_machine()).acquire(id=0):
        status, out, err = run(name, "-d", "0")
    assert status == 3
    assert out == ""
    assert "is held by process" in err


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", [*EXCLUSIVE, "info"])
def test_a_device_that_is_not_there(name: str, run: Run) -> None:
    more = ["-i"] if name == "info" else []
    status, _, err = run(name, "-d", "7", *more)
    assert status == 3
    assert "There is no device 7" in err


def test_a_named_device_is_not_sought_on_a_copy(run: Run) -> None:
    with Pod(find_machine()).acquire(id=0):
        assert run("info", "-d", "0", "--tile-overview")[0] == 3


@pytest.mark.usefixtures("small")
def test_the_device_is_free_after_a_test(run: Run) -> None:
    run("memorytest", "-d", "0")
    assert Pod(find_machine()).holders() == ()


def test_numbers_are_readable() -> None:
    assert [render_number(v) for v in (1.0, 0.5, 1e-6, 123456789.0)] == [
        "1",
        "0.5",
        "0.000001",
        "123456789.000000",
    ]
    assert as_text({"a": [True, 1, 0.25]}) == {"a": ["true", "1", "0.25"]}


def test_the_monitor_loads_neither_numpy_nor_the_planner() -> None:
    code = (
        "import sys; from popple.tools.gc import monitor; monitor.main(['-j']); "
        "print({'numpy', 'popple.plan', 'popple.sim'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"


def test_every_option_has_help() -> None:
    for path in (SRC / "popple/tools/gc").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                "add_argument"
            ):
                keywords = {keyword.arg for keyword in node.keywords}
                assert keywords & {"help", "action"}, f"{path.name}:{node.lineno}"
