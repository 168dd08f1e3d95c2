"""Two instances of two replicas each give what one instance with four gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

Results = dict[str, list[Any]]
ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("programs.py")


def launch(directory: Path, num_instances: int) -> subprocess.Popen[str]:
    directory.mkdir()
    poprun = [sys.executable, "-m", "popple.tools.poprun"]
    layout = [f"--num-instances={num_instances}", "--num-replicas=4"]
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "POPPLE_TENSORFLOW": "on",
    }
    return subprocess.Popen(
        [*poprun, *layout, sys.executable, str(PROGRAM), str(directory)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Results]]:
    """What every instance of a job wrote, by the number of instances."""
    directory = tmp_path_factory.mktemp("popdist")
    jobs = {count: launch(directory / str(count), count) for count in (1, 2)}
    for job in jobs.values():
        output, _ = job.communicate(timeout=300)
        assert job.returncode == 0, output
    return {
        count: [
            json.loads((directory / str(count) / f"{index}.json").read_text())
            for index in range(count)
        ]
        for count in jobs
    }


@pytest.mark.parametrize("program", ["fit", "custom_loop"])
def test_weights_losses_and_cost_are_those_of_one_instance(
    results: dict[int, list[Results]], program: str
) -> None:
    # To the last bit: sums are added in the order of all replicas.
    (alone,), both = results[1], results[2]
    assert [instance[program] for instance in both] == [alone[program]] * 2


def test_sessions_train_together_and_count_replicas_through(
    results: dict[int, list[Results]],
) -> None:
    (alone,), both = results[1], results[2]
    weights, _ = alone["session"]
    # The first replica of each instance of two is number 0 and number 2.
    assert [each["session"] for each in both] == [[weights, [[0], [2]]]] * 2


def test_host_collectives_reach_all_instances(
    results: dict[int, list[Results]],
) -> None:
    # Instances send 1 and 2: their sum is 3 and the last one's value is 2.
    expected: Sequence[Any] = [3.0, [[True, True], [True, False]], 2.0]
    assert [each["collectives"] for each in results[2]] == [expected] * 2


def test_horovods_names_reach_all_instances(
    results: dict[int, list[Results]],
) -> None:
    # Of the ranks 0 and 1: the mean of 0 and 2, the sum, rows joined, the last value.
    expected: Sequence[Any] = [[2, 2, 0], 1.0, 1, [[1, 0], [1, 1]], [1.0]]
    assert [each["horovod"] for each in results[2]] == [expected] * 2


def test_an_instance_that_is_left_alone_gets_an_error(
    results: dict[int, list[Results]],
) -> None:
    assert results[2][0]["left_alone"] == ["UnavailableError"]
