"""Random numbers. Source: PopLibs poprand cycle estimators.

Every vertex sets up 24 worker cycles of generator state; a 64-bit word of results
takes the cycles of the table.
"""

from __future__ import annotations

from popple.units import ceil_div

SETUP_CYCLES = 24
WORD_CYCLES = {
    "dropout": 2,
    "normal": 4,
    "uniform": 4,  # the estimator counts bits as bytes; normal's rate is used
    "bernoulli": 1,
    "random_integers": 4,  # assumed: as uniform
    "permutation": 8,  # assumed: a key and an index per element, then a sort
}


def random_cycles(
    kind: str, num_elements: int, num_lanes: int, num_workers: int
) -> int:
    """Supervisor 6, set-up of each worker, then words; rates are tile cycles."""
    words = ceil_div(num_elements, num_lanes)
    return 6 + SETUP_CYCLES * num_workers + WORD_CYCLES[kind] * words


def set_seed_cycles(num_workers: int) -> int:
    """The seed of an op, mixed for each worker into its generator."""
    return 14 + 27 * num_workers
