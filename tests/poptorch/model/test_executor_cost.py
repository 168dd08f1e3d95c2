"""What a model costs: cycles, compilation time, reports, the model itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import popple
import poptorch
from tests.poptorch.models import Classifier, Scale, batch, options

X = torch.ones(2)


def test_cycle_counts_must_be_asked_for() -> None:
    model = poptorch.inferenceModel(Scale(), options())
    with pytest.raises(poptorch.Error, match="Please set option logCycleCount to True"):
        model.cycleCount()


def test_cycle_counts_need_a_run() -> None:
    opts = options()
    opts.logCycleCount(True)
    model = poptorch.inferenceModel(Scale(), opts)
    with pytest.raises(poptorch.Error, match="run the model at least once"):
        model.cycleCount()
    model.compile(X)
    with pytest.raises(poptorch.Error, match="run the model at least once"):
        model.cycleCount()
    model(X)
    assert model.cycleCount() > 0


def test_the_ipu_model_counts_no_cycles() -> None:
    opts = options().useIpuModel(True)
    opts.logCycleCount(True)
    with pytest.raises(poptorch.Error, match="only supported on actual IPU hardware"):
        poptorch.inferenceModel(Scale(), opts).cycleCount()


def test_compilation_time_needs_a_compiled_model_and_its_bar(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = poptorch.inferenceModel(Scale())
    with pytest.raises(poptorch.Error, match="Please compile the model"):
        model.compilationTime()
    model.compile(X)
    assert model.compilationTime().total_seconds() > 0
    assert "Graph compilation: 100%" in capsys.readouterr().err
    silent = poptorch.inferenceModel(Scale(), options())
    silent.compile(X)
    assert capsys.readouterr().err == ""
    with pytest.raises(poptorch.Error, match="Please set showCompilationProgressBar"):
        silent.compilationTime()


def test_a_failed_compilation_has_no_time() -> None:
    opts = poptorch.Options()
    model = poptorch.inferenceModel(Scale(), opts)
    with pytest.raises(RuntimeError):
        model(torch.ones(3))
    with pytest.raises(poptorch.Error, match="Please compile the model"):
        model.compilationTime()


def test_a_model_is_modelled_on_its_ipus() -> None:
    module = Classifier(num_ipus=2)
    adam = poptorch.optim.Adam(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, options(d=2, g=4, r=2), adam)
    with pytest.raises(poptorch.Error, match="not been compiled"):
        popple.modelled(model)
    model(*batch(32))
    modelled = popple.modelled(model)
    execution = modelled.graph.execution
    assert (execution.num_chips, execution.num_stages) == (2, 3)
    # 2 samples x 4 micro-batches x 2 replicas x 2 iterations
    assert execution.samples_per_run == 32
    assert {op.kind for op in modelled.graph.ops} >= {"adam_update", "all_reduce"}
    assert modelled.samples_per_second > 0
    assert popple.modelled(model) is modelled


def test_profiling_writes_a_report(tmp_path: Path) -> None:
    opts = options().enableProfiling(str(tmp_path))
    poptorch.inferenceModel(Scale(), opts)(X)
    assert (tmp_path / "inference" / "profile.pop").is_file()


def test_the_report_has_the_models_name(tmp_path: Path) -> None:
    opts = options().enableProfiling(str(tmp_path)).modelName("mine")
    poptorch.trainingModel(Scale(), opts)(X)
    assert (tmp_path / "mine" / "profile.pop").is_file()


def test_the_environment_asks_for_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(wanted))
    poptorch.inferenceModel(Scale(), options())(X)
    assert (tmp_path / "inference" / "profile.pop").is_file()


def test_engine_options_that_are_no_json_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "autoReport.all=true")
    with pytest.raises(poptorch.Error, match="is not a JSON object"):
        poptorch.inferenceModel(Scale(), options())(X)


def test_models_of_one_name_get_reports_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPPLE_REPORT", str(tmp_path))
    for _ in range(2):
        poptorch.inferenceModel(Scale(), options())(X)
    found = {path.parent.name for path in tmp_path.glob("*/profile.pop")}
    assert found == {"inference", "inference_2"}
