"""A transformer that leaves its mask out when all of it is one, unless compiled.

Libraries of transformers look at the values of a padding mask to choose a kernel, and
do not when they are told that they are being compiled; each asks in its own way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.programs.poptorch.plain import quiet

WAYS: dict[str, Callable[[], bool]] = {
    "compiler": lambda: torch.compiler.is_compiling(),
    "dynamo": lambda: torch._dynamo.is_compiling(),  # type: ignore[attr-defined]
    "either": lambda: torch.jit.is_tracing() or torch.compiler.is_compiling(),
}


class Encoder(nn.Module):
    """One layer of attention over embedded tokens, with a classifier behind."""

    def __init__(self, is_compiled: Callable[[], bool]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.projections = nn.Linear(8, 24)
        self.out = nn.Linear(8, 3)
        self.is_compiled = is_compiled

    def prepared(self, mask: Tensor, dtype: torch.dtype) -> Tensor | None:
        if not self.is_compiled() and torch.all(mask == 1):
            return None
        hidden = 1.0 - mask[:, None, None, :].to(dtype)
        return hidden.masked_fill(hidden.bool(), torch.finfo(dtype).min)

    def forward(self, tokens: Tensor, mask: Tensor, labels: Tensor) -> Any:
        x = self.embedding(tokens)
        parts = self.projections(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(
            *parts.unbind(), attn_mask=self.prepared(mask, x.dtype)
        )
        scores = self.out(attended.transpose(1, 2).flatten(2)[:, 0])
        return F.cross_entropy(scores, labels), scores


@pytest.mark.parametrize("way", WAYS)
def test_it_trains_and_infers(way: str) -> None:
    import torch._dynamo  # one of the ways is in there

    torch.manual_seed(0)
    model, twin = Encoder(WAYS[way]), Encoder(WAYS[way])
    twin.load_state_dict(model.state_dict())
    tokens = torch.randint(0, 11, (4, 6))
    mask = (torch.arange(6) < torch.tensor([[6], [4], [5], [2]])).long()
    labels = torch.tensor([0, 2, 1, 1])
    training = poptorch.trainingModel(
        model, quiet(), poptorch.optim.SGD(model.parameters(), lr=0.5)
    )
    sgd = torch.optim.SGD(twin.parameters(), lr=0.5)
    for _ in range(2):
        loss, _ = training(tokens, mask, labels)
        sgd.zero_grad()
        plain, _ = twin(tokens, mask, labels)
        plain.backward()
        sgd.step()
        torch.testing.assert_close(loss, plain.detach())
    inference = poptorch.inferenceModel(model, quiet())
    whole = torch.ones_like(mask)  # plain PyTorch leaves it out
    _, scores = inference(tokens, whole, labels)
    torch.testing.assert_close(scores, twin(tokens, whole, labels)[1])
    assert not torch.compiler.is_compiling()
