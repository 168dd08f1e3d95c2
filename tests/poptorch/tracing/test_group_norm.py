"""Group normalisation whose groups stride over the channels."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import poptorch
from tests.poptorch.models import options


@pytest.mark.parametrize("shape", [(3, 6), (2, 6, 4)])
@pytest.mark.parametrize("is_strided", [False, True])
def test_channels_of_a_group(shape: tuple[int, ...], is_strided: bool) -> None:
    norm = nn.GroupNorm(2, 6)
    nn.init.uniform_(norm.weight)
    nn.init.uniform_(norm.bias)
    x = torch.randn(shape)
    opts = options()
    opts._Popart.set("groupNormStridedChannelGrouping", is_strided)
    result = poptorch.inferenceModel(norm, opts)(x)
    # Channels 0, 2, 4 make a group, and 1, 3, 5.
    order = torch.tensor([0, 2, 4, 1, 3, 5]) if is_strided else torch.arange(6)
    weight, bias = norm.weight[order], norm.bias[order]
    expected = F.group_norm(x[:, order], 2, weight, bias).detach()
    torch.testing.assert_close(result[:, order], expected)
