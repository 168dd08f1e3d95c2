"""Distances between points of the same example."""

from __future__ import annotations

from torch import Tensor

from .._foreign.points import apart, squared_distances

__all__ = ["FLOWS", "example_distances", "in_flow"]

FLOWS = ("source_to_target", "target_to_source")


def example_distances(
    a: Tensor,
    b: Tensor,
    example_a: Tensor | None,
    example_b: Tensor | None,
    cosine: bool = False,
) -> Tensor:
    """Squared distances from each a to each b; infinite between examples.

    Without examples for one of the two, all its points are of example 0.
    """
    for points, example in ((a, example_a), (b, example_b)):
        if example is not None and example.shape != points.shape[:1]:
            raise AssertionError(
                f"The batch vector has shape {tuple(example.shape)} but there are "
                f"{points.shape[0]} points."
            )
    distance = squared_distances(a, b, cosine)
    if example_a is None and example_b is None:
        return distance
    if example_a is None:
        example_a = a.new_zeros(a.shape[0])
    if example_b is None:
        example_b = b.new_zeros(b.shape[0])
    return apart(distance, example_a, example_b)


def in_flow(pairs: Tensor, flow: str) -> Tensor:
    """(target, source) pairs as the edges of a graph of that flow."""
    if flow not in FLOWS:
        raise AssertionError(f"flow must be one of {FLOWS}, not {flow!r}.")
    return pairs.flip([0]) if flow == "source_to_target" else pairs
