"""CTC decoding against the sum over all alignments."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import pytest
import torch
from torch import Tensor

import poptorch
from tests.poptorch.running import on_ipu

Labels = tuple[int, ...]


def label_probabilities(steps: Tensor, blank: int) -> dict[Labels, float]:
    """Probability of every label sequence: alignments added up one by one."""
    found: dict[Labels, float] = defaultdict(float)
    rows = steps.exp().tolist()
    for alignment in itertools.product(range(steps.shape[1]), repeat=len(rows)):
        merged = [label for label, _ in itertools.groupby(alignment)]
        labels = tuple(label for label in merged if label != blank)
        found[labels] += math.prod(map(lambda r, c: r[c], rows, alignment))
    return found


def random_log_probs(time: int, batch: int, classes: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(time, batch, classes, generator=generator).log_softmax(2)


@pytest.mark.parametrize("blank", [0, 2])
def test_a_wide_beam_finds_the_best_sequences(blank: int) -> None:
    log_probs = random_log_probs(5, 3, 3)
    lengths = torch.tensor([5, 3, 1])
    probs, sizes, paths = on_ipu(
        lambda p, n: poptorch.ctc_beam_search_decoder(p, n, blank, 200, 2),
        log_probs,
        lengths,
    )
    for example, length in enumerate(lengths.tolist()):
        known = label_probabilities(log_probs[:length, example], blank)
        best = sorted(known, key=known.__getitem__, reverse=True)[:2]
        for rank, labels in enumerate(best):
            size = int(sizes[example, rank])
            assert tuple(paths[example, rank, :size].tolist()) == labels
            assert float(probs[example, rank]) == pytest.approx(
                math.log(known[labels]), abs=1e-5
            )


def test_a_narrow_beam_keeps_probabilities_of_what_it_finds() -> None:
    """A beam of one follows the best prefix, whose probability is a lower bound."""
    log_probs = random_log_probs(6, 1, 3)
    probs, sizes, paths = poptorch.ctc_beam_search_decoder(
        log_probs, torch.tensor([6]), beam_width=1
    )
    labels = tuple(paths[0, 0, : int(sizes[0, 0])].tolist())
    assert float(probs) <= math.log(label_probabilities(log_probs[:, 0], 0)[labels])


def test_results_have_the_shapes_and_types_of_the_device() -> None:
    probs, sizes, paths = on_ipu(
        lambda p, n: poptorch.ctc_beam_search_decoder(p, n, 0, 8, 4),
        random_log_probs(7, 2, 5),
        torch.tensor([7, 4], dtype=torch.int32),
    )
    assert (probs.shape, probs.dtype) == ((2, 4), torch.float32)
    assert (sizes.shape, sizes.dtype) == ((2, 4), torch.int32)
    assert (paths.shape, paths.dtype) == ((2, 4, 7), torch.int32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(3, 2), torch.ones(2)), "dimensions time, batch and classes"),
        ((torch.zeros(3, 1, 2), torch.ones(1), 2), "blank is 2, but there are 2"),
        ((torch.zeros(3, 1, 2), torch.ones(1), 0, 4, 5), "beam_width of 4, not 5"),
        ((torch.zeros(3, 1, 2), [3]), "lengths .* must be a torch.Tensor, not list"),
    ],
)
def test_arguments_are_checked(arguments: tuple[Tensor, ...], message: str) -> None:
    with pytest.raises(poptorch.Error, match=message):
        poptorch.ctc_beam_search_decoder(*arguments)  # pyright: ignore
