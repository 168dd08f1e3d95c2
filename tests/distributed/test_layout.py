"""Which instance runs where, and what it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.distributed.agent import numa_nodes
from popple.distributed.layout import (
    common_variables,
    default_threads,
    describe_layout,
    exported_variables,
    place_instances,
)
from popple.distributed.options import LaunchOptions
from popple.errors import UsageError

FOUR = LaunchOptions(num_instances=4, num_replicas=8, host="host[0-1]")


def test_hosts_have_consecutive_instances() -> None:
    placed = place_instances(FOUR)
    assert [each.host for each in placed] == ["host0", "host0", "host1", "host1"]
    last = placed[3].instance
    assert (last.index, last.local_index, last.replica_offset) == (3, 1, 6)
    assert not placed[0].is_local


def test_hosts_must_divide_instances() -> None:
    with pytest.raises(UsageError, match="4 instances cannot be divided evenly"):
        place_instances(LaunchOptions(num_instances=4, num_replicas=4, host="a,b,c"))


def test_the_table_shows_replicas() -> None:
    lines = describe_layout(place_instances(FOUR)).splitlines()
    assert lines[-1].split() == ["3", "host1", "1", "6-7", "2"]


def test_mpirun_exports_variables() -> None:
    exported, others = exported_variables(
        "-x A=1 -x B --mca x y -x GONE", {"B": "2", "C": "3"}
    )
    assert exported == {"A": "1", "B": "2"}
    assert others == ["--mca", "x", "y"]


def test_one_option_sets_all_caches(tmp_path: Path) -> None:
    options = LaunchOptions(executable_cache_path=str(tmp_path))
    found = common_variables(options, {"TF_POPLAR_FLAGS": "--use_ipu_model"})
    assert found["POPTORCH_CACHE_DIR"] == str(tmp_path)
    assert found["POPDIST_EXECUTABLE_CACHE_PATH"] == str(tmp_path)
    wanted = f"--use_ipu_model --executable_cache_path={tmp_path}"
    assert found["TF_POPLAR_FLAGS"] == wanted


def test_cores_are_shared_unless_the_user_chooses() -> None:
    assert default_threads({}, 10**6) == {"OMP_NUM_THREADS": "1"}
    assert default_threads({"OMP_NUM_THREADS": "7"}, 2) == {}


def test_numa_nodes_are_read(tmp_path: Path) -> None:
    for number, text in ((0, "0-1,4\n"), (10, "5\n"), (2, "\n")):
        folder = tmp_path / f"node{number}"
        folder.mkdir()
        (folder / "cpulist").write_text(text)
    # A node without cores holds memory only; node 10 comes after node 2.
    assert numa_nodes(tmp_path) == [{0, 1, 4}, {5}]
