"""Which process this is, and PopTorch options that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import popdist
import popdist.poptorch
import poptorch

VARIABLES = {
    "POPDIST_NUM_TOTAL_REPLICAS": "8",
    "POPDIST_NUM_LOCAL_REPLICAS": "2",
    "POPDIST_NUM_IPUS_PER_REPLICA": "4",
    "POPDIST_REPLICA_INDEX_OFFSET": "6",
    "POPDIST_LOCAL_INSTANCE_INDEX": "1",
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    popdist.finalizeBackend()


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


def facts() -> dict[str, int]:
    names = [name for name in popdist.__all__ if name.startswith("get")]
    return {name.removeprefix("get"): getattr(popdist, name)() for name in names}


def test_a_program_of_its_own_is_alone() -> None:
    assert not popdist.isPopdistEnvSet()
    assert facts() == {
        "DeviceId": 0,
        "InstanceIndex": 0,
        "LocalInstanceIndex": 0,
        "NumInstances": 1,
        "NumIpusPerReplica": 1,
        "NumLocalReplicas": 1,
        "NumTotalReplicas": 1,
        "ReplicaIndexOffset": 0,
    }
    assert not popdist.isBackendInitialized()
    popdist.init()
    popdist.synchronize()
    assert popdist.isBackendInitialized()


@pytest.mark.usefixtures("launched")
def test_a_launcher_says_which_process_this_is() -> None:
    assert popdist.isPopdistEnvSet()
    # 8 replicas, 2 in each process: the one that begins at replica 6 is the last.
    assert facts() == {
        # Devices 28 and 29 of a Pod16 have eight IPUs each.
        "DeviceId": 29,
        "InstanceIndex": 3,
        "LocalInstanceIndex": 1,
        "NumInstances": 4,
        "NumIpusPerReplica": 4,
        "NumLocalReplicas": 2,
        "NumTotalReplicas": 8,
        "ReplicaIndexOffset": 6,
    }


@pytest.mark.usefixtures("launched")
def test_others_are_found_through_the_launcher() -> None:
    for function in (popdist.init, popdist.synchronize):
        with pytest.raises(RuntimeError, match="knows no launcher"):
            function()


@pytest.mark.usefixtures("launched")
def test_some_instances_only() -> None:
    assert popdist.execute_on_instances({0, 3}, max, 1, 2) == 2
    assert popdist.execute_on_instances({0}, max, 1, 2) is None


@pytest.mark.usefixtures("launched")
def test_a_variable_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPDIST_NUM_LOCAL_REPLICAS", "many")
    with pytest.raises(RuntimeError, match="'many', not a number"):
        popdist.getNumLocalReplicas()


@pytest.mark.usefixtures("launched")
def test_options_are_the_launchers() -> None:
    opts = popdist.poptorch.Options(ipus_per_replica=4)
    assert opts.replication_factor == 2
    assert (opts.Distributed.processId, opts.Distributed.numProcesses) == (3, 4)


@pytest.mark.usefixtures("launched")
def test_program_and_launcher_must_agree() -> None:
    with pytest.raises(RuntimeError, match="--ipus-per-replica=2"):
        popdist.poptorch.Options(ipus_per_replica=2)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("useIpuId", lambda opts: opts.useIpuId(1)),
        ("replicationFactor", lambda opts: opts.replicationFactor(2)),
        ("Distributed.disable", lambda opts: opts.Distributed.disable()),
        (
            "Distributed.setEnvVarNames",
            lambda o: o.Distributed.setEnvVarNames("a", "b"),
        ),
        (
            "Distributed.configureProcessId",
            lambda opts: opts.Distributed.configureProcessId(1),
        ),
    ],
)
def test_what_the_launcher_decides(name: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=f"Cannot call `{name}` with popdist"):
        call(popdist.poptorch.Options())


def test_all_else_is_as_in_poptorch() -> None:
    opts = popdist.poptorch.Options().deviceIterations(3)
    assert isinstance(opts, poptorch.Options)
    assert opts.clone().device_iterations == 3
    with pytest.raises(RuntimeError, match="Cannot call"):
        opts.clone().Distributed.disable()
