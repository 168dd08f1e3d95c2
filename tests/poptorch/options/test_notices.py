"""Options without effect are named in the log, the first time they are set."""

from __future__ import annotations

import pytest

import poptorch
from poptorch._options import notices


@pytest.fixture
def logged(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> pytest.CaptureFixture[str]:
    monkeypatch.setattr(notices, "_SAID", set())
    return capfd


def said(logged: pytest.CaptureFixture[str]) -> str:
    out, error = logged.readouterr()
    return out + error


def test_setters_say_it_once(logged: pytest.CaptureFixture[str]) -> None:
    poptorch.Options().enableStableNorm(True).enableStableNorm(False)
    poptorch.Options().Training.setConvolutionDithering(True)
    text = said(logged)
    assert text.count("Option enableStableNorm has no effect: norms are") == 1
    assert "Option Training.setConvolutionDithering has no effect" in text


def test_names_of_the_back_end_are_told_apart(
    logged: pytest.CaptureFixture[str],
) -> None:
    options = poptorch.Options()
    options._Popart.set("enableOutlining", False)
    options._Popart.set("decomposeGradSum", True)
    text = said(logged)
    assert "enableOutlining" not in text
    assert "Option _Popart.set('decomposeGradSum') has no effect" in text


def test_options_with_effect_say_nothing(logged: pytest.CaptureFixture[str]) -> None:
    poptorch.Options().deviceIterations(2).Precision.enableStochasticRounding(True)
    poptorch.Options().enableExecutableCaching("somewhere")
    assert said(logged) == ""
