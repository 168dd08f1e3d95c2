"""Writes ONNX models as files."""

from __future__ import annotations

from pathlib import Path

import onnx

from popple.files import replace_file


def write_model(model: onnx.ModelProto, path: Path, *, is_text: bool = False) -> None:
    """Write a protocol buffer, which ONNX tools open, or its text for people."""
    with replace_file(path) as draft:
        onnx.save_model(model, draft, format="textproto" if is_text else "protobuf")
