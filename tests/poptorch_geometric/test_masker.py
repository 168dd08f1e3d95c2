from __future__ import annotations

import pytest
import torch

from poptorch_geometric.masker import Entries, Mask, NoMasker, PreLayerMasker

KINDS = ["node", "edge", "graph"]


class FirstOnly(NoMasker):
    def edge_masker(self, edge_entries: Entries, mask: Mask = None) -> Entries:
        return tuple(entry[mask] for entry in edge_entries)


@pytest.mark.parametrize("kind", KINDS)
def test_no_masker_changes_nothing(kind: str) -> None:
    entries = torch.ones(3)
    assert getattr(NoMasker(), f"{kind}_masker")(entries) is entries


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_without_padding_works_as_before(kind: str) -> None:
    layer = getattr(PreLayerMasker(NoMasker()), f"{kind}_masker")(torch.add)
    assert layer(torch.ones(2), torch.ones(2)).tolist() == [2, 2]


def test_a_layer_sees_what_is_left() -> None:
    layer = PreLayerMasker(FirstOnly()).edge_masker(torch.sum)
    assert layer(torch.ones(3), mask=torch.tensor([True, False, True])).item() == 2
