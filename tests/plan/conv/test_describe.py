"""Words about plans: splits, sums, and what memory has to do with it."""

from __future__ import annotations

import math
import re

import pytest

from popple.graph import DType
from popple.plan.conv.describe import (
    describe_choice,
    describe_reduction,
    describe_splits,
)
from popple.plan.conv.problem import ConvProblem, matmul_problem
from popple.plan.conv.search import Choice, find_choice
from tests.plan.conv.machines import target_of

F16, F32 = DType.F16, DType.F32


def choose(shape: tuple[int, int, int], proportion: float = 0.6) -> Choice:
    problem = matmul_problem(1, shape, F16, F32, F16)
    return find_choice(problem, target_of("bow").chip, proportion)


def num_parts(text: str) -> int:
    return math.prod(map(int, re.findall(r"\d+", text)))


def test_splits_multiply_to_the_tiles_used() -> None:
    best = choose((512, 1024, 1024)).best
    text = describe_splits(best)
    assert num_parts(text) == best.split.num_used
    assert "in turn" not in text


def test_serial_parts_are_named_apart() -> None:
    best = choose((4096, 4096, 2048), 0.05).best
    parallel, _, serial = describe_splits(best).partition("; in turn ")
    assert num_parts(parallel) == best.split.num_used
    assert num_parts(serial) == best.setting.serial.count > 1


def test_one_product_stays_on_one_tile() -> None:
    assert describe_splits(choose((1, 1, 1)).best) == "one tile"


def test_stages_cover_all_partials() -> None:
    best = choose((16, 65536, 16)).best
    count, text = re.split(" partials of f32 in ", describe_reduction(best))
    depths = text.partition(", ")[2]
    assert int(count) == best.split.num_summed > 1
    assert num_parts(depths) >= int(count)


def test_a_convolution_names_field_and_kernel() -> None:
    one, two = (1, 1), (2, 2)
    problem = ConvProblem(4, 1, (56, 56), (3, 3), 64, 64, one, two, one, F16, F32, F16)
    best = find_choice(problem, target_of("bow").chip, 0.6).best
    assert "field" in describe_splits(best)


@pytest.mark.parametrize("key", ["method", "splits", "reduction", "tiles"])
def test_the_choice_has_everything_a_report_shows(key: str) -> None:
    assert dict(describe_choice(choose((512, 1024, 1024)), 1))[key]
