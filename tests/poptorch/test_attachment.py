"""Holding IPUs: the log, waiting for others, and what nobody uses any more."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

import poptorch
from popple.device import Lease, Pod, create_pod, find_machine
from poptorch._device import Attachment
from poptorch._logging import TRACE
from tests.poptorch.models import Scale, options

X = torch.ones(2)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    words = ("Acquired", "Attached", "Finished", "Detached")
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return [text for text in found if text.startswith(words)]


@pytest.fixture
def traced(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(TRACE, logger="poptorch::python")
    return caplog


def test_always_attaches_before_the_compilation_ends(
    traced: pytest.LogCaptureFixture,
) -> None:
    poptorch.inferenceModel(Scale(), options()).compile(X)
    assert messages(traced) == [
        "Acquired 1 IPU(s): running on device Id 0",
        "Attached to device 0",
        "Finished Poplar compilation",
    ]


def test_on_demand_compiles_for_a_device_that_may_be_in_use(
    traced: pytest.LogCaptureFixture,
) -> None:
    opts = options().connectionType(poptorch.ConnectionType.OnDemand)
    first, second = (poptorch.inferenceModel(Scale(), opts) for _ in range(2))
    first(X)
    messages(traced)
    second(X)
    assert messages(traced) == [
        "Acquired 1 IPU(s): running on device Id 0",
        "Finished Poplar compilation",
        "Acquired 1 IPU(s): running on device Id 1",
        "Attached to device 1",
    ]


def test_detaching_is_logged(traced: pytest.LogCaptureFixture) -> None:
    model = poptorch.inferenceModel(Scale(), options())
    model.compile(X)
    messages(traced)
    model.detachFromDevice()
    assert messages(traced) == ["Detached from device"]


def hold_all() -> list[Lease]:
    return [Pod(find_machine()).acquire(id=index) for index in range(16)]


def test_without_waiting_busy_ipus_are_an_error() -> None:
    leases = hold_all()
    with pytest.raises(poptorch.Error, match=f"is held by process {os.getpid()}"):
        Attachment(options()).hold(1)
    assert len(leases) == 16


def test_waiting_ends_when_an_ipu_is_free(
    monkeypatch: pytest.MonkeyPatch, traced: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("POPTORCH_WAIT_FOR_IPU", "1")
    leases = hold_all()
    attachment = Attachment(options(), wait=lambda seconds: leases.pop().release())
    attachment.hold(1)
    assert attachment.is_held
    texts = [record.getMessage() for record in traced.records]
    assert texts.count("No IPU available, sleeping") == 1


HOLD_ELSEWHERE = """
import sys
from popple.device import Pod, find_machine

lease = Pod(find_machine()).acquire(id=1)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """Another program, which holds device 1 of the default machine."""
    command = [sys.executable, "-c", HOLD_ELSEWHERE]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_program_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, holder: subprocess.Popen[str]
) -> None:
    monkeypatch.setenv("POPTORCH_WAIT_FOR_IPU", "1")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        holder.communicate("")  # it ends, and lets go

    attachment = Attachment(options().useIpuId(1), wait=wait)
    attachment.hold(1)
    assert (attachment.is_held, len(waits)) == (True, 1)


def test_another_program_is_no_obstacle_to_who_does_not_wait(
    holder: subprocess.Popen[str],
) -> None:
    attachment = Attachment(options().useIpuId(1), wait=lambda s: pytest.fail("waits"))
    attachment.hold(1)
    assert attachment.is_held
    assert holder.poll() is None


def test_waiting_does_not_help_where_there_is_no_such_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POPTORCH_WAIT_FOR_IPU", "1")
    with pytest.raises(poptorch.Error, match="No device of bow-pod16 has 32 chips"):
        Attachment(options(), wait=lambda seconds: pytest.fail("waits")).hold(32)


def test_models_out_of_use_let_go_of_their_ipus() -> None:
    def leave_behind() -> None:
        poptorch.trainingModel(Scale(), options().useIpuId(3))(X)

    leave_behind()  # module and executor refer to each other: only gc finds them
    poptorch.inferenceModel(Scale(), options().useIpuId(3))(X)


def test_a_failed_compilation_holds_nothing() -> None:
    opts = options().useIpuId(0)
    opts.updatableNamedBuffers(["nonesuch"])
    with pytest.raises(poptorch.Error, match="nonesuch"):
        poptorch.inferenceModel(Scale(), opts).compile(X)
    poptorch.inferenceModel(Scale(), options().useIpuId(0)).compile(X)


class Traced(Scale):
    """Counts how often forward is traced."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.append(1)
        return super().forward(x)


def test_busy_ipus_are_an_error_before_tracing() -> None:
    leases, module = hold_all(), Traced()
    with pytest.raises(
        poptorch.Error, match=r"Failed to acquire 1 IPU\(s\): Device 0,"
    ):
        poptorch.inferenceModel(module, options()).compile(X)
    assert module.calls == []
    leases[3].release()
    poptorch.inferenceModel(module, options()).compile(X)
    assert module.calls


def test_a_chosen_device_is_asked_for_before_tracing() -> None:
    lease, module = Pod(find_machine()).acquire(id=24), Traced()
    with pytest.raises(poptorch.Error, match="Device 16 of bow-pod16 is held"):
        poptorch.inferenceModel(module, options().useIpuId(16)).compile(X)
    assert module.calls == []
    lease.release()
    # What device 16 has, the model does not need: that is known after tracing only.
    with pytest.raises(poptorch.Error, match="device 16 has 2 IPUs, the model needs 1"):
        poptorch.inferenceModel(module, options().useIpuId(16)).compile(X)
    assert Pod(find_machine()).holders() == ()


def make_two_blocks() -> torch.nn.Sequential:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    poptorch.BeginBlock(module[0], "first", ipu_id=0)
    poptorch.BeginBlock(module[1], "second", ipu_id=1)
    return module


def test_blocks_say_how_many_ipus_before_tracing() -> None:
    pod = Pod(find_machine())
    leases = [pod.acquire(id=index) for index in range(0, 16, 2)]
    opts = options(d=4)
    with pytest.raises(poptorch.Error, match=r"Failed to acquire 2 IPU\(s\)"):
        poptorch.inferenceModel(make_two_blocks(), opts).compile(torch.ones(4, 2))
    assert len(pod.holders()) == len(leases)


class BlockInside(torch.nn.Module):
    """Its second IPU is known when it is traced, not before."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.append(1)
        with poptorch.Block("first", ipu_id=0):
            x = x * 2
        with poptorch.Block("second", ipu_id=1):
            return x + 1


def test_more_ipus_after_tracing(traced: pytest.LogCaptureFixture) -> None:
    model = poptorch.inferenceModel(BlockInside(), options(d=4))
    model.compile(torch.ones(4, 2))
    assert messages(traced) == [
        "Acquired 2 IPU(s): running on device Id 16",
        "Attached to device 16",
        "Finished Poplar compilation",
    ]
    assert [h.chip_id for h in Pod(find_machine()).holders()] == [0, 1]


def test_more_ipus_after_tracing_that_are_not_free() -> None:
    pod, module = Pod(find_machine()), BlockInside()
    leases = [pod.acquire(id=index) for index in range(1, 16, 2)]
    with pytest.raises(poptorch.Error, match=r"Failed to acquire 2 IPU\(s\)"):
        poptorch.inferenceModel(module, options(d=4)).compile(torch.ones(4, 2))
    assert module.calls
    assert len(pod.holders()) == len(leases)


def test_replicas_are_asked_for_before_tracing() -> None:
    lease, module = Pod(find_machine()).acquire(id=0), Traced()
    with pytest.raises(poptorch.Error, match=r"Failed to acquire 16 IPU\(s\)"):
        poptorch.inferenceModel(module, options(r=16)).compile(torch.ones(16))
    assert (module.calls, lease.is_held) == ([], True)


def test_without_attaching_nothing_is_asked_for() -> None:
    leases = hold_all()
    for connection in (poptorch.ConnectionType.Never, poptorch.ConnectionType.OnDemand):
        opts = options().connectionType(connection)
        poptorch.inferenceModel(Scale(), opts).compile(X)
    opts = options().useIpuModel(True)
    poptorch.inferenceModel(Scale(), opts)(X)
    assert len(leases) == 16


def test_runs_are_counted() -> None:
    model = poptorch.inferenceModel(Scale(), options())
    for _ in range(3):
        model(X)
    (holder,) = Pod(find_machine()).holders()
    assert (holder.activity.runs, holder.activity.running) == (3, 0)
    model.detachFromDevice()
    assert Pod(find_machine()).holders() == ()


def test_a_pod_of_ones_own_is_exclusive() -> None:
    create_pod("dss8440")
    assert poptorch.ipuHardwareVersion() == 1
    lease = Pod(find_machine()).acquire(id=30)
    with pytest.raises(poptorch.Error, match="The system is dss8440"):
        poptorch.inferenceModel(Scale(), options()).compile(X)
    lease.release()


def test_cycles_are_logged_once_per_call(traced: pytest.LogCaptureFixture) -> None:
    opts = options()
    opts.logCycleCount(True)
    model = poptorch.inferenceModel(Scale(), opts)
    model(X)
    model(X)
    lines = [r for r in traced.records if "Total number of IPU cycles" in r.message]
    assert [r.message for r in lines] == [
        f"Total number of IPU cycles: {model.cycleCount()}"
    ] * 2
    assert {r.levelno for r in lines} == {logging.DEBUG}
