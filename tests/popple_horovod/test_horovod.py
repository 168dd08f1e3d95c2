"""Horovod's names: served where there is none, and what they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.distributed.jobs import instances, poprun

PROGRAM = """
import popple_horovod, torch
import horovod.torch as hvd
hvd.init()
rank = hvd.rank()
print(
    hvd.size(), hvd.local_rank(), hvd.local_size(),
    hvd.allgather(torch.arange(rank + 1)).tolist(),
    hvd.allreduce(torch.tensor([2.0 * rank])).item(),
    hvd.allreduce(torch.tensor(3 * rank), op=hvd.Sum).item(),
    hvd.allreduce(torch.tensor(rank), average=False).item(),
    hvd.allreduce(torch.tensor(rank), op=hvd.Max).item(),
    [t.item() for t in hvd.grouped_allreduce([torch.tensor(1.0)], op=hvd.Average)],
    hvd.broadcast(torch.tensor([rank + 5]), root_rank=1).tolist(),
)
layer = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.constant_(layer.weight, float(rank))
hvd.broadcast_parameters(layer.state_dict(), root_rank=1)
assert layer.weight.item() == 1.0
hvd.barrier()
"""


def test_calls_between_two_instances() -> None:
    done = poprun(PROGRAM, *instances(2))
    assert done.returncode == 0, done.stderr
    lines = sorted(line.partition(":")[2] for line in done.stdout.splitlines())
    # Ranks 0 and 1: the mean of 0 and 2, the sum of 0 and 3, of 0 and 1, the largest.
    rest = "[0, 0, 1] 1.0 3 1 1 [1.0] [6]"
    assert lines == [f"2 0 2 {rest}", f"2 1 2 {rest}"]


def python(code: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd
    )
    return done.stdout + done.stderr


def test_without_init_there_is_a_word() -> None:
    code = "import popple_horovod, horovod.torch as hvd; hvd.size()"
    assert "Horovod has not been initialized" in python(code, Path())


def test_a_real_horovod_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "horovod").mkdir()
    (tmp_path / "horovod" / "__init__.py").write_text("name = 'real'")
    code = "import popple_horovod, horovod; print(horovod.name); import horovod.torch"
    shown = python(code, tmp_path)
    assert shown.startswith("real\n")
    assert "No module named 'horovod.torch'" in shown


def test_the_start_of_python_loads_nothing_else() -> None:
    code = "import sys; old = set(sys.modules); import popple_horovod; "
    code += "print(sorted(set(sys.modules) - old))"
    # Where Popple is installed, Python's start has loaded it already.
    assert python(code, Path()) in ("['popple_horovod']\n", "[]\n")
