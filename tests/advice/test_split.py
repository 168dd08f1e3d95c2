"""Splits of a program over chips."""

from __future__ import annotations

import pytest

from popple.advice.split import (
    Layer,
    Tail,
    choose_cuts,
    find_layers,
    split_graph,
    unit_of,
)
from popple.graph import Phase
from tests.advice.stacks import stack, stack_case, tied_case


@pytest.mark.parametrize(
    ("module", "unit"),
    [
        ("layers.3.attention.qkv", "layers.3"),
        ("encoder.layer.11", "encoder.layer.11"),
        ("head", "head"),
        ("head.dense", "head"),
        ("", ""),
    ],
)
def test_layers_are_numbered_modules(module: str, unit: str) -> None:
    assert unit_of(module) == unit


def test_backward_work_is_in_the_layer_of_its_module() -> None:
    layers = find_layers(stack(3))
    assert [layers[name] for name in ("x1", "x3", "d0", "d2", "g1")] == [0, 2, 0, 2, 1]


def test_the_fullest_stage_is_as_empty_as_can_be() -> None:
    sizes = [8, 1, 1, 1, 8, 1]
    layers = [Layer(str(n), size, 0, 0) for n, size in enumerate(sizes)]
    # Any other two cuts leave 9 or more in one of the parts 8 | 1 1 1 | 8 1.
    assert choose_cuts(layers, 3) == [1, 4]


def test_what_is_stashed_counts_for_early_stages() -> None:
    # What enters the second layer is kept for three micro-batches of two stages.
    layers = [Layer("0", 4, 0, 0), Layer("1", 4, 0, 9), Layer("2", 4, 0, 0)]
    assert choose_cuts(layers, 2) == [2]


def test_each_stage_lies_on_one_chip_and_data_flow_forward() -> None:
    case = stack_case(6)
    split = split_graph(case.graph, case.options, 3)
    assert split is not None
    assert split.begins == (("layers.2", 1), ("layers.4", 2))
    places = {(op.chip, op.stage) for op in split.graph.ops}
    assert places == {(0, 0), (1, 1), (2, 2)}
    stages = [op.stage for op in split.graph.ops if op.phase is Phase.FORWARD]
    assert stages == sorted(stages)


def test_there_are_no_more_stages_than_layers() -> None:
    case = stack_case(2)
    assert split_graph(case.graph, case.options, 3) is None


def test_states_that_come_for_the_update_count_once_a_chip() -> None:
    # 2 + 2 + 4 on the first chip and 4 * 2 on the other one; without, 3 layers each.
    layers = [Layer("0", 2, 0, 0, 4), *(Layer(str(n), 2, 0, 0) for n in range(1, 6))]
    assert choose_cuts(layers, 2) == [2]


def test_a_tied_head_returns_to_the_chip_of_its_table() -> None:
    # The head adds 6 to the first chip: 2 + 6 there, 2 + 2 + 2 on the second.
    layers = [Layer(str(n), 2, 0, 0) for n in range(4)] + [Layer("4", 6, 0, 0)]
    assert choose_cuts(layers, 2, Tail(0, 4)) == [1, 4]
    case = tied_case(4)
    split = split_graph(case.graph, case.options, 2)
    assert split is not None
    assert split.begins[-1] == ("head", 0)
    places = {(op.chip, op.stage) for op in split.graph.ops}
    assert places == {(0, 0), (1, 1), (0, 2)}
