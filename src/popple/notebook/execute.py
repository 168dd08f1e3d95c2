"""Runs notebooks in a kernel of their own, on virtual IPUs.

In: a notebook, a directory, an environment. Out: the notebook with outputs, or the cell
that failed; and which IPUs it still holds after its last cell.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popple.notebook.rule import Spot

if TYPE_CHECKING:
    from nbformat import NotebookNode

# Asked in the kernel after the last cell: it knows which machine it uses.
_PROBE = """\
import json as _json, os as _os
from popple.device.views import look as _look
print(_json.dumps(sorted(
    {h.chip_id for v in _look(at_all=True) for h in v.holders if h.pid == _os.getpid()}
)))
"""
_LINE = re.compile(r"line (\d+)")


@dataclass(frozen=True)
class Execution:
    """How a run went; `error` is empty if every cell ran."""

    notebook: NotebookNode
    seconds: float
    error: str = ""
    traceback: str = ""
    cell: int = 0
    held: tuple[int, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.error and not self.held

    @property
    def spot(self) -> Spot:
        """Where it failed, for a finding."""
        found = _LINE.search(self.traceback)
        line = int(found[1]) if found else 1
        detail = self.error or f"it still holds IPUs {', '.join(map(str, self.held))}"
        return Spot(max(self.cell, 1), line, detail)


def execute(
    notebook: NotebookNode,
    directory: Path,
    environment: Mapping[str, str],
    timeout_seconds: int = 600,
) -> Execution:
    """Run all cells from top to bottom in a fresh kernel."""
    from nbclient.exceptions import (
        CellExecutionError,
        CellTimeoutError,
        DeadKernelError,
    )

    ran = copy.deepcopy(notebook)
    client = _make_client(ran, directory, timeout_seconds)
    start = time.perf_counter()
    try:
        with client.setup_kernel(env=dict(environment)):
            for index, cell in enumerate(ran.cells):
                client.execute_cell(cell, index)
            held = _held_chips(client)
    except CellExecutionError as error:
        seconds = time.perf_counter() - start
        number = _failed_cell(ran)
        what = f"{error.ename}: {error.evalue}"
        return Execution(ran, seconds, what, str(error.traceback), number)
    except (CellTimeoutError, DeadKernelError) as error:
        seconds = time.perf_counter() - start
        return Execution(ran, seconds, str(error), "", _failed_cell(ran))
    return Execution(ran, time.perf_counter() - start, held=held)


def _make_client(notebook: NotebookNode, directory: Path, timeout: int) -> Any:
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    # The Python that runs this, whatever kernels are registered on the computer.
    arguments = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    # Errors only: it warns of sockets, which only this computer can reach.
    arguments.append("--IPKernelApp.log_level=40")
    spec = KernelSpec(argv=arguments, display_name="Popple", language="python")

    class OwnPython(AsyncKernelManager):
        """Starts that kernel; nbclient makes one of these, and ends it."""

        @property
        def kernel_spec(self) -> KernelSpec:
            return spec

    return NotebookClient(
        notebook,
        kernel_manager_class=OwnPython,
        coalesce_streams=True,
        timeout=timeout,
        resources={"metadata": {"path": str(directory)}},
    )


def _held_chips(client: Any) -> tuple[int, ...]:
    from nbformat import v4

    cell = v4.new_code_cell(_PROBE)
    client.nb.cells.append(cell)
    client.execute_cell(cell, len(client.nb.cells) - 1)
    client.nb.cells.pop()
    printed = "".join(output.get("text", "") for output in cell.outputs)
    return tuple(json.loads(printed.strip().splitlines()[-1]))


def _failed_cell(notebook: NotebookNode) -> int:
    """The number of the last cell that began to run."""
    started = [
        number
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "code" and (cell.execution_count or cell.outputs)
    ]
    return started[-1] if started else 1
