from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

import poptorch
from poptorch._tracing import extensions as _extensions


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_poptorch_imports_no_other_library() -> None:
    code = "import sys, poptorch; print('torch_geometric' in sys.modules)"
    assert python(code) == "False\n"


@pytest.mark.skipif(
    not _extensions.find_spec("torch_geometric"), reason="needs torch_geometric"
)
def test_a_graph_loads_its_extension() -> None:
    code = (
        "import torch, torch_geometric, poptorch\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, graph): return graph.x + 1\n"
        "graph = torch_geometric.data.Data(x=torch.ones(2))\n"
        "print(poptorch.inferenceModel(Model())(graph).tolist())\n"
    )
    assert python(code) == "[2.0, 2.0]\n"


def test_tracing_happens_inside_what_extensions_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    @contextmanager
    def noted() -> Iterator[None]:
        events.append("begin")
        yield
        events.append("end")

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            events.append("forward")
            return x + 1

    monkeypatch.setitem(_extensions._CONTEXTS, "test", noted)
    poptorch.inferenceModel(Model())(torch.ones(2))
    assert events == ["begin", "forward", "end"]


def test_a_broken_extension_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_extensions, "_EXTENSIONS", {"fractions": "no_such_package"})
    monkeypatch.setattr(_extensions.logger, "propagate", True)
    from fractions import Fraction

    with caplog.at_level(logging.WARNING):
        _extensions.load_extension_of(Fraction)
    assert "fractions is in use but not supported" in caplog.text


def test_parsers_can_be_registered_by_hand() -> None:
    poptorch.registerGeometricCustomArgParsers()
    assert ("poptorch_geometric" in sys.modules) == bool(
        _extensions.find_spec("torch_geometric")
    )
