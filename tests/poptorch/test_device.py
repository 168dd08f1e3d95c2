"""The virtual pod as programs see it."""

from __future__ import annotations

import pytest

import poptorch


def test_the_default_is_a_pod16_of_bow_ipus() -> None:
    assert poptorch.ipuHardwareIsAvailable()
    assert poptorch.ipuHardwareIsAvailable(16)
    assert not poptorch.ipuHardwareIsAvailable(3)
    assert not poptorch.ipuHardwareIsAvailable(32)
    assert poptorch.ipuHardwareVersion() == 2


def test_the_environment_names_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPPLE_TARGET", "c600x8")
    assert poptorch.ipuHardwareIsAvailable(8)
    assert not poptorch.ipuHardwareIsAvailable(16)
    assert poptorch.ipuHardwareVersion() == 21


def test_the_type_of_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHCORE_POD_TYPE", "pod4")
    assert poptorch.ipuHardwareIsAvailable(4)
    assert not poptorch.ipuHardwareIsAvailable(8)
    monkeypatch.setenv("GRAPHCORE_POD_TYPE", "pod5")
    with pytest.raises(poptorch.Error, match="GRAPHCORE_POD_TYPE is 'pod5'"):
        poptorch.ipuHardwareIsAvailable()


@pytest.mark.parametrize("name", ["POPTORCH_IPU_MODEL", "POPTORCH_SMALL_IPU_MODEL"])
def test_the_ipu_model_is_no_hardware(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    assert not poptorch.ipuHardwareIsAvailable()
    with pytest.raises(AssertionError, match="There is no IPU"):
        poptorch.ipuHardwareVersion()
    monkeypatch.setenv(name, "0")
    assert poptorch.ipuHardwareIsAvailable()
