"""Tensors over processes; here threads stand for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist

from popple.engine.torch.peers import Peers
from popple.errors import UsageError


def together(count: int, work: Callable[[Peers], Any]) -> list[Any]:
    """What each of `count` processes finds, all working at once."""
    store = dist.HashStore()

    def run(index: int) -> Any:
        gloo: Any = dist.ProcessGroupGloo
        options = gloo._Options()
        options._timeout = timedelta(seconds=60)
        options._devices = [gloo.create_device(hostname="127.0.0.1")]
        group = gloo(store, index, count, options)
        return work(Peers(group, index, count, "cpu"))

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_sums_of_several_types(count: int) -> None:
    def work(peers: Peers) -> list[Any]:
        number = peers.index + 1
        tensors = [
            torch.full((2, 3), float(number)),
            torch.tensor(number),
            torch.full((5,), number, dtype=torch.float16),
        ]
        return [total.tolist() for total in peers.sums_of(tensors)]

    total = count * (count + 1) // 2
    wanted = [[[total] * 3] * 2, total, [total] * 5]
    assert together(count, work) == [wanted] * count


def test_all_get_the_same_bits_added_in_pairs() -> None:
    # 2**24 and 1 + 1: single ones would be lost.
    values = (2.0**24, 0.0, 1.0, 1.0)
    found = together(4, lambda p: p.sums_of([torch.tensor(values[p.index])])[0].item())
    assert found == [2.0**24 + 2] * 4


def test_parts_of_different_lengths_are_gathered() -> None:
    def work(peers: Peers) -> list[int]:
        return torch.cat(peers.gather(torch.arange(peers.index + 1))).tolist()

    assert together(3, work) == [[0, 0, 1, 0, 1, 2]] * 3


def test_one_sends_to_all() -> None:
    def work(peers: Peers) -> list[bool]:
        tensor = torch.tensor([peers.index == 1, False])
        peers.send_all([tensor], root=1)
        return tensor.tolist()

    assert together(2, work) == [[True, False]] * 2


def test_weights_are_compared() -> None:
    def work(peers: Peers) -> tuple[bool, bool]:
        same, other = torch.ones(3), torch.full((3,), float(peers.index))
        return peers.check_equal([same]), peers.check_equal([same, other])

    assert together(2, work) == [(True, False)] * 2


def test_other_models_are_refused() -> None:
    with pytest.raises(UsageError, match="they have 1, 2 weights"):
        together(2, lambda peers: peers.check_equal([torch.ones(peers.index + 1)]))
