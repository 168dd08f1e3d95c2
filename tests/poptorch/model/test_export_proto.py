"""The captured model as an ONNX file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import poptorch
from poptorch._model.export_proto import Field, render_binary, render_text
from tests.poptorch.models import Scale, options

MESSAGE = [
    Field(1, "number", 300),
    Field(2, "text", 'a"b'),
    Field(3, "part", [Field(1, "number", 1)]),
]


def test_text_form() -> None:
    assert (
        render_text(MESSAGE) == 'number: 300\ntext: "a\\"b"\npart {\n  number: 1\n}\n'
    )


def test_wire_form() -> None:
    # 300 = 0b10_0101100: low seven bits with the top bit set, then 2.
    # Keys are number << 3, + 2 for what has a length.
    expected = b"\x08\xac\x02" + b'\x12\x03a"b' + b"\x1a\x02\x08\x01"
    assert render_binary(MESSAGE) == expected


def compile_with(monkeypatch: pytest.MonkeyPatch, file: Path, binary: str) -> None:
    monkeypatch.setenv("POPTORCH_EXPORT_PROTO_FILE", str(file))
    monkeypatch.setenv("POPTORCH_EXPORT_PROTO_AS_BINARY", binary)
    poptorch.inferenceModel(Scale(), options()).compile(torch.ones(2))


def test_the_environment_asks_for_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new" / "model.proto"
    compile_with(monkeypatch, file, "0")
    text = file.read_text()
    assert 'producer_name: "popple"' in text
    assert 'op_type: "Mul"' in text
    assert text.count('input: "weight"') == 1


def test_the_environment_asks_for_a_protocol_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.onnx"
    compile_with(monkeypatch, file, "1")
    assert file.read_bytes().startswith(b"\x08\x08\x12\x06popple")


def test_onnx_reads_both_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx")
    from google.protobuf import text_format

    binary, text = tmp_path / "model.onnx", tmp_path / "model.txt"
    compile_with(monkeypatch, binary, "1")
    compile_with(monkeypatch, text, "0")
    model = onnx.load(binary)
    onnx.checker.check_model(model)
    assert text_format.Parse(text.read_text(), onnx.ModelProto()) == model
