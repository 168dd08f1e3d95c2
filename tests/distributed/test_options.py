"""Command lines and files of poprun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from popple.distributed.options import LaunchOptions, parse_command_line, write_config
from popple.errors import UsageError


def parse(text: str) -> LaunchOptions:
    return parse_command_line(text.split())


def test_options_end_where_the_program_begins() -> None:
    found = parse("--num-replicas=4 --num-instances 2 python train.py --num-replicas 9")
    assert (found.num_replicas, found.num_instances) == (4, 2)
    assert found.program == ("python", "train.py", "--num-replicas", "9")


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("--print-topology=yes", "print_topology", True),
        ("--print-topology on", "print_topology", True),
        ("--print-topology", "print_topology", True),
        ("--remove-partition 0", "remove_partition", False),
        ("--numa-aware=off", "numa_aware", False),
        ("--num-inst 1", "num_instances", 1),
        ("-H a,b", "host", "a,b"),
        ("--host a --host b", "host", "a,b"),
        ("--mpi-global-args --tag-output", "mpi_global_args", "--tag-output"),
        ("--vipu-partition=p1", "vipu_partition", "p1"),
        ("-vv", "verbose", 2),
    ],
)
def test_forms_of_options(text: str, name: str, value: Any) -> None:
    found = parse(f"{text} prog")
    assert (getattr(found, name), found.program) == (value, ("prog",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--num-replica-s 1", "has no option --num-replica-s"),
        ("--num- 1", "It could be --num-replicas, --num-instances"),
        ("--num-replicas few", "needs a number, not 'few'"),
        ("--num-replicas", "needs a value"),
        ("--numa-aware=maybe", "is yes or no, not 'maybe'"),
        ("--num-replicas 3 --num-instances 2 x", "3 replicas cannot be divided evenly"),
        ("--num-instances 0 x", "must be at least 1"),
        ("--only-output-from-instance 1 x", "There is no instance 1"),
        ("--host a --hostfile b x", "exclude each other"),
    ],
)
def test_command_lines_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(text)


def test_the_command_line_beats_a_file(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    write_config(parse("--num-replicas 8 --num-instances 4 --numa-aware=1"), path)
    assert json.loads(path.read_text()) == {
        "num-replicas": 8,
        "num-instances": 4,
        "numa-aware": True,
    }
    found = parse(f"--num-instances 2 --import-config {path} x")
    assert (found.num_replicas, found.num_instances, found.numa_aware) == (8, 2, True)


def test_files_are_replaced_on_request(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    write_config(LaunchOptions(), path)
    with pytest.raises(UsageError, match="--overwrite-config=yes"):
        write_config(LaunchOptions(), path)
    write_config(LaunchOptions(num_replicas=2, overwrite_config=True), path)
    assert json.loads(path.read_text()) == {"num-replicas": 2}


@pytest.mark.parametrize("text", ["[1]", "{", '{"num-wheels": 4}'])
def test_files_that_make_no_sense(tmp_path: Path, text: str) -> None:
    path = tmp_path / "job.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        parse(f"--import-config {path} x")
