"""Which instance a process is, as variables and back."""

from __future__ import annotations

import pytest

from popple.distributed import Instance, find_instance, get_instance
from popple.errors import UsageError

# The third of four instances with two replicas each: it begins at replica 4.
THIRD = Instance(
    index=2,
    count=4,
    local_index=1,
    local_count=2,
    local_replicas=2,
    ipus_per_replica=4,
    store="here:1",
    store_key="k",
)


def test_variables_tell_all() -> None:
    variables = THIRD.variables()
    assert find_instance(variables) == THIRD
    assert variables["POPDIST_NUM_TOTAL_REPLICAS"] == "8"
    assert variables["POPDIST_REPLICA_INDEX_OFFSET"] == "4"
    assert variables["OMPI_COMM_WORLD_RANK"] == "2"


def test_without_variables_a_process_is_alone() -> None:
    assert find_instance({}) is None
    assert get_instance({}) == Instance()


def test_compiling_only_is_told_too() -> None:
    offline = Instance(is_offline=True)
    assert find_instance(offline.variables()) == offline


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("POPDIST_NUM_LOCAL_REPLICAS", "many", "'many', not a number"),
        ("POPDIST_NUM_LOCAL_REPLICAS", "3", "8 replicas cannot be spread"),
        ("POPDIST_REPLICA_INDEX_OFFSET", "8", "no instance 4 of 4"),
        ("POPDIST_NUM_IPUS_PER_REPLICA", "0", "at least one replica of one IPU"),
    ],
)
def test_variables_that_make_no_sense(name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_instance({**THIRD.variables(), name: text})
