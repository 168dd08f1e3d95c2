"""Holding IPUs: the log, waiting for others, and what nobody uses any more."""

from __future__ import annotations

import logging
import os

import pytest
import torch

import poptorch
from popple.device import Lease, Pod
from poptorch._device import Attachment, system
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
    return [Pod(system()).acquire(id=index) for index in range(16)]


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
