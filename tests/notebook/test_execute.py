"""Notebooks run in kernels of their own, on as many IPUs as the variables say."""

from __future__ import annotations

import os
from pathlib import Path

from nbformat import NotebookNode, v4

from popple.notebook.checking import Request, check_files
from popple.notebook.execute import Execution, execute

READ = """\
import argparse, os
from popple.notebook import ArgumentParser, is_notebook
from popple.device.views import look
parser = ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
names = ("NUM_AVAILABLE_IPU", "GRAPHCORE_POD_TYPE")
print([os.environ[name] for name in names], look()[0].machine.system.num_chips)
print(is_notebook(), parser.parse_args().epochs, parser.parse_args(["--epochs", "1"]))
"""
HOLD = """\
from popple.device import Pod, find_machine
pod = Pod(find_machine())
lease = pod.acquire(num_chips=2)
"""


def run(home: Path, *sources: str, ipus: int = 4) -> Execution:
    cells = [v4.new_code_cell(source) for source in sources]
    environment = {
        **os.environ,
        "POPPLE_STATE": str(home),
        "NUM_AVAILABLE_IPU": str(ipus),
        "GRAPHCORE_POD_TYPE": f"pod{ipus}",
    }
    return execute(v4.new_notebook(cells=cells), home, environment)


def printed(notebook: NotebookNode) -> list[str]:
    texts = [str(o.text) for cell in notebook.cells for o in cell.outputs]
    return "".join(texts).splitlines()


def test_variables_choose_the_machine_and_arguments_have_defaults(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, READ, HOLD, "lease.release()")
    assert done.passed
    assert printed(done.notebook) == [
        "['4', 'pod4'] 4",
        "True 3 Namespace(epochs=1)",
    ]


def test_a_notebook_that_keeps_its_ipus_has_not_passed(tmp_path: Path) -> None:
    done = run(tmp_path, HOLD)
    assert not done.passed
    assert done.held == (0, 1)


def test_the_cell_that_failed_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "x = 1", "y = 2\nraise ValueError('wrong')", "z = 3")
    assert (done.spot.cell, done.spot.detail) == (2, "ValueError: wrong")


def test_checks_can_run_notebooks(tmp_path: Path) -> None:
    import nbformat

    code = "import os\nassert os.environ['NUM_AVAILABLE_IPU'] != '4'"
    notebook = v4.new_notebook(cells=[v4.new_code_cell(code)])
    nbformat.write(notebook, tmp_path / "a.ipynb")
    request = Request((tmp_path,), runs=True, only=("N77", "N78"))
    outcome = check_files(request, os.environ)
    assert [finding.rule.id for finding in outcome.findings] == ["N78"]
