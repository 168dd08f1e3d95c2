"""What a call returns has no backward pass, and says so."""

from __future__ import annotations

import copy
import io
import subprocess
import sys

import pytest
import torch

import poptorch
from tests.poptorch.models import Scale, options


def test_backward_on_an_output_is_refused() -> None:
    loss = poptorch.trainingModel(Scale(), options())(torch.ones(2))
    with pytest.raises(poptorch.Error, match=r"trainingModel runs the backward pass"):
        loss.backward()


def test_other_tensors_are_left_alone() -> None:
    poptorch.inferenceModel(Scale(), options())(torch.ones(2))
    x = torch.ones(1, requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.item() == 3
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(()).backward()


def test_what_is_computed_from_an_output_can_have_a_gradient() -> None:
    out = poptorch.inferenceModel(Scale(), options())(torch.ones(2))
    weight = torch.ones((), requires_grad=True)
    (out * weight).backward()
    assert weight.grad is not None


def test_importing_changes_nothing() -> None:
    check = "before = torch.Tensor.backward; import poptorch; "
    check += "assert torch.Tensor.backward is before"
    subprocess.run([sys.executable, "-c", f"import torch; {check}"], check=True)


def test_outputs_are_plain_tensors() -> None:
    out = poptorch.inferenceModel(Scale(), options())(torch.ones(2))
    assert type(out) is torch.Tensor
    assert torch.equal(copy.deepcopy(out), out)
    file = io.BytesIO()
    torch.save(out, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=True), out)
