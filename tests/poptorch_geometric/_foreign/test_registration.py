"""Programs that use a library get the plain forms of its operators by themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from popple.capture.torch import plain_operators
from poptorch_geometric import _foreign

# A stand-in for the compiled library, with one operator that cannot be traced.
TORCH_SCATTER = """
import sys, types, torch
sys.modules["torch_scatter"] = types.ModuleType("torch_scatter")
library = torch.library.Library("torch_scatter", "DEF")
library.define("scatter_mul(Tensor src, Tensor index, int dim, Tensor? out, "
               "int? dim_size) -> Tensor")
library.impl("scatter_mul", lambda src, *_: torch.tensor(src.tolist()), "CPU")
"""
PROGRAM = """
import poptorch
class Model(torch.nn.Module):
    def forward(self, x, index):
        return torch.ops.torch_scatter.scatter_mul(x, index, 0, None, 2)
x, index = torch.tensor([2.0, 3.0, 5.0]), torch.tensor([0, 0, 1])
print(poptorch.inferenceModel(Model())(x, index).tolist())
"""
# As if torch_geometric were not installed.
WITHOUT_GEOMETRIC = """
import importlib.util
find_spec = importlib.util.find_spec
def spec_of(name, *rest):
    return None if name == "torch_geometric" else find_spec(name, *rest)
importlib.util.find_spec = spec_of
sys.modules["torch_geometric"] = None
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_operators_of_torch_scatter_are_traced_in_their_plain_form() -> None:
    assert run(TORCH_SCATTER + PROGRAM) == "[6.0, 5.0]\n"


def test_so_they_are_without_torch_geometric() -> None:
    assert run(TORCH_SCATTER + WITHOUT_GEOMETRIC + PROGRAM) == "[6.0, 5.0]\n"


def test_without_torch_geometric_the_package_says_what_is_missing() -> None:
    code = "import sys" + WITHOUT_GEOMETRIC + "import poptorch_geometric as package\n"
    tries = """
for name in ("FixedSizeDataLoader", "nonsense"):
    try:
        getattr(package, name)
    except Exception as error:
        print(type(error).__name__, error)
"""
    assert run(code + tries).splitlines() == [
        "ModuleNotFoundError No module named 'torch_geometric'",
        "AttributeError module 'poptorch_geometric' has no attribute 'nonsense'",
    ]


@pytest.mark.skipif("pyg_lib" in sys.modules, reason="pyg-lib brings them itself")
def test_operators_of_pyg_are_there_while_torch_geometric_is_traced() -> None:
    pytest.importorskip("torch_geometric")
    _foreign.register()
    points = torch.tensor([[0.0], [2.0], [3.0]])
    was_there = hasattr(torch.ops.pyg, "nearest")
    with plain_operators(_foreign.OPERATORS):
        assert torch.ops.pyg.nearest(points, points[1:]).tolist() == [0, 0, 1]
    assert hasattr(torch.ops.pyg, "nearest") is was_there
