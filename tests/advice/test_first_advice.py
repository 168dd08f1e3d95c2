"""The first advice on models that do not fit, followed: then they fit."""

from __future__ import annotations

import time

import pytest

import popple
from benchmarks.advise import CASES, compiled

MOST_SECONDS = 60


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_model_fits_once_its_first_advice_is_followed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPPLE_TARGET", "bow-pod64")
    start = time.process_time()
    advice = popple.advise(compiled(CASES[name]))
    assert time.process_time() - start <= MOST_SECONDS
    assert not advice.outcome.fits
    assert advice.first is not None
    changed = advice.first.case
    modelled = popple.model_graph(changed.graph, changed.target, changed.options)
    assert modelled.simulation.fits
