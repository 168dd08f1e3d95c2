"""Half precision where processors have none: products in float32, in every program."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import poptorch
from popple.engine.torch import half_products
from popple.engine.torch.half_products import PRODUCTS
from tests.poptorch.models import Classifier, batch, groups_of, options, twins

PROGRAMS: dict[str, tuple[int, dict[str, int], str]] = {
    "one after the other": (1, {"d": 3}, "replay"),
    "accumulation": (1, {"d": 3, "g": 2}, "replay"),
    "replicas": (1, {"d": 3, "r": 2}, "replay"),
    "pipeline": (2, {"d": 3, "g": 4}, "replay"),
    "compiled": (1, {"d": 3, "g": 2}, "inductor"),
}


class InFloat(nn.Linear):
    """A layer in half precision that multiplies in float32 and rounds once."""

    def forward(self, input: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.float()
        return F.linear(input.float(), self.weight.float(), bias).half()


@pytest.fixture(autouse=True)
def _slow_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_products, "is_half_slow", lambda: True)


def in_half(num_ipus: int) -> tuple[nn.Module, nn.Module]:
    """A model, and one that says itself what is computed in float32."""
    torch.manual_seed(0)
    module, reference = twins(Classifier(num_ipus).half())
    for layer in reference.modules():
        if isinstance(layer, nn.Linear):
            layer.__class__ = InFloat
    return module, reference


def trained_plainly(reference: nn.Module, x: Tensor, y: Tensor, group: int) -> None:
    """SGD whose gradients are summed in half precision, and weights rounded once."""
    for pairs in groups_of(x, y, 2, group):
        for parameter in reference.parameters():
            parameter.grad = None
        for own, labels in pairs:
            reference(own, labels)[1].backward()
        with torch.no_grad():
            for p in reference.parameters():
                assert p.grad is not None
                p.copy_(p.float() - 0.1 / group * p.grad.float())


@pytest.mark.parametrize("name", PROGRAMS)
def test_training_multiplies_in_float(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_ipus, sizes, backend = PROGRAMS[name]
    monkeypatch.setenv("POPPLE_BACKEND", backend)
    module, reference = in_half(num_ipus)
    group = sizes.get("g", 1) * sizes.get("r", 1)
    x, y = batch(2 * 3 * group)
    optimizer: Any = poptorch.optim.SGD(module.parameters(), lr=0.1)
    poptorch.trainingModel(module, options(**sizes), optimizer)(x.half(), y)
    trained_plainly(reference, x.half(), y, group)
    for mine, theirs in zip(module.parameters(), reference.parameters(), strict=True):
        # A step of a half near 0.3; an update with weights of before is ten times that.
        torch.testing.assert_close(mine.detach(), theirs.detach(), rtol=0, atol=2e-4)


def test_inference_multiplies_in_float() -> None:
    module, reference = in_half(1)
    x = batch(2)[0].half()
    logits = poptorch.inferenceModel(module, options())(x)[0]
    assert logits.equal(reference(x)[0])


class Products(TorchDispatchMode):
    """Collects the types of what products take while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.types: set[torch.dtype] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func.overloadpacket in {each.overloadpacket for each in PRODUCTS}:
            leaves = pytree.tree_leaves((args, kwargs))
            self.types |= {x.dtype for x in leaves if isinstance(x, Tensor)}
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("is_slow", [True, False])
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "compiled"])
def test_no_product_runs_in_half_where_that_is_slow(
    name: str, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_products, "is_half_slow", lambda: is_slow)
    num_ipus, sizes, _ = PROGRAMS[name]
    module, _ = in_half(num_ipus)
    x, y = batch(2 * 3 * sizes.get("g", 1) * sizes.get("r", 1))
    optimizer: Any = poptorch.optim.SGD(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, options(**sizes), optimizer)
    model(x.half(), y)  # traces, in half
    with Products() as products:
        model(x.half(), y)
    assert products.types == {torch.float32 if is_slow else torch.float16}
