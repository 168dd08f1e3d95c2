"""Options by the back end's names: checked and logged when a model is compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import poptorch
from poptorch.poptorch_core import _validateOptions
from tests.poptorch.models import Scale, options


def logged(opts: poptorch.Options, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.set_level("DEBUG", logger="poptorch::python")
    _validateOptions(opts.outputMode(poptorch.OutputMode.All).toDict())
    prefix = "poptorch.Options "
    texts = [record.getMessage() for record in caplog.records]
    return [text.removeprefix(prefix) for text in texts if text.startswith(prefix)]


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("enableOutlining", True, "set enableOutlining to value true"),
        ("autoRecomputation", 3, "set autoRecomputation to value 3"),
        ("outlineThreshold", 0.5, "set outlineThreshold to value 0.5"),
        ("outlineThreshold", 2, "set outlineThreshold to value 2"),
        ("engineOptions", {"a.b": "c"}, "set engineOptions[a.b] to c"),
        ("dotChecks", ["FINAL"], "added FINAL to dotChecks"),
        ("hardwareInstrumentations", {0}, "added 0 to hardwareInstrumentations"),
    ],
)
def test_lines(
    key: str, value: Any, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    opts = poptorch.Options()
    opts._Popart.set(key, value)
    assert line in logged(opts, caplog)


def test_enumerations_are_logged_as_numbers(caplog: pytest.LogCaptureFixture) -> None:
    opts = poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution())
    lines = logged(opts, caplog)
    assert {"set execution_mode to value 1", "set output_mode to value 2"} <= {*lines}


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (
            "enableOutlinning",
            True,
            "Unknown bool option enableOutlinning.*Did you mean",
        ),
        ("enableOutlining", "yes", "Unknown string option enableOutlining: it takes a"),
        ("dotChecks", torch.ones(1), "Unknown value type Tensor for option dotChecks"),
    ],
)
def test_what_does_not_exist_is_refused(key: str, value: Any, error: str) -> None:
    opts = options()
    opts._Popart.set(key, value)
    with pytest.raises(poptorch.Error, match=error):
        poptorch.inferenceModel(Scale(), opts).compile(torch.ones(2))


def test_every_setter_leads_to_known_names() -> None:
    opts = poptorch.Options().randomSeed(1).useIpuId(0).enableExecutableCaching("x")
    opts.setAvailableMemoryProportion({"IPU0": 0.5}).modelName("m")
    opts.Training.setAutomaticLossScaling(True).setConvolutionDithering(True)
    opts.Precision.enableStochasticRounding(True).setPartialsType(torch.half)
    opts.TensorLocations.numIOTiles(32)
    opts._Popart.setPatterns({"PadSum": False}, 0)
    _validateOptions(opts.outputMode(poptorch.OutputMode.Final).toDict())


@pytest.mark.parametrize(("use", "word"), [(True, "Enabled"), (False, "Disabled")])
def test_the_choice_of_the_ipu_model_is_said(
    use: bool, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="poptorch::python")
    poptorch.inferenceModel(Scale(), options().useIpuModel(use)).compile(torch.ones(2))
    assert f"From the user configuration: Ipu model: {word}" in caplog.messages
