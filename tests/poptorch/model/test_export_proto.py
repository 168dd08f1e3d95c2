"""The captured model as an ONNX file."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

import poptorch
from tests.poptorch.models import Scale, options


class Classifier(nn.Module):
    """Has ops of several kinds, one with two results, weights and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.linear = nn.Linear(4 * 2 * 2, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.norm(self.conv(x)).flatten(1)
        values, places = self.linear(features).max(1)
        return values, places


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the environment asks for."""
    file = tmp_path / "new" / "model.onnx"
    monkeypatch.setenv("POPTORCH_EXPORT_PROTO_FILE", str(file))
    return file


def compile_scale() -> None:
    poptorch.inferenceModel(Scale(), options()).compile(torch.ones(2))


def test_the_environment_asks_for_text(asked: Path) -> None:
    compile_scale()
    text = asked.read_text("utf-8")
    assert 'producer_name: "popple"' in text
    assert 'op_type: "Mul"' in text
    assert text.count('input: "weight"') == 1


def test_the_environment_asks_for_a_protocol_buffer(
    asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPTORCH_EXPORT_PROTO_AS_BINARY", "1")
    compile_scale()
    model = onnx.load(asked)
    onnx.checker.check_model(model)
    assert (model.ir_version, model.producer_version) == (8, poptorch.__version__)
    assert [value.name for value in model.graph.input] == ["weight", "seen", "x"]


def test_both_forms_say_the_same(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = poptorch.inferenceModel(Classifier(), options())
    wrapped.compile(torch.ones(2, 3, 4, 4))
    from_text = onnx.load_model(asked, format="textproto")
    monkeypatch.setenv("POPTORCH_EXPORT_PROTO_AS_BINARY", "1")
    again = poptorch.inferenceModel(Classifier(), options())
    again.compile(torch.ones(2, 3, 4, 4))
    model = onnx.load_model(asked)
    onnx.checker.check_model(model)
    assert from_text == model
    names = [node.name for node in model.graph.node]
    assert len(set(names)) == len(names)


def test_without_onnx_the_error_says_what_to_install(
    asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name for name in sys.modules if name.startswith("popple.capture.onnx")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(poptorch.Error, match=r"pip install 'popple\[onnx\]'"):
        compile_scale()
    assert not asked.exists()
