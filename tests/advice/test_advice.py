"""Advice: what is modelled, how it is ranked, and that following it helps."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from popple.advice import (
    Advice,
    Case,
    advise,
    advise_case,
    parse_case,
    render_advice,
    render_case,
)
from popple.advice.changes import (
    cut_head,
    merged_words,
    move_states_off_chip,
    share_states,
    shrink_micro_batch,
    split_over,
)
from popple.errors import ReportError
from popple.graph import parse_graph
from popple.pipeline import model_graph
from tests.advice.stacks import stack_case


def follow(advice: Advice) -> bool:
    """Whether the program fits as the first advice changes it."""
    assert advice.first is not None
    case = advice.first.case
    return model_graph(case.graph, case.target, case.options).simulation.fits


def test_what_fits_needs_no_remedy() -> None:
    advice = advise_case(stack_case(2))
    assert advice.outcome.fits
    assert advice.remedies == ()
    assert "stack fits on 1 IPU" in render_advice(advice)


@pytest.fixture(scope="module")
def crowded() -> Advice:
    """Three layers: 1.5 MB of weights, twice as much of each state, in 10 MB."""
    return advise_case(stack_case(3))


def test_state_off_the_chip_makes_room(crowded: Advice) -> None:
    assert not crowded.outcome.fits
    assert crowded.first is not None
    assert crowded.first.changes == ("optimiser state off the chip",)
    assert follow(crowded)
    # Two states of 4 bytes for each of 3 * 512 * 512 weights, over 16 tiles.
    saved = crowded.outcome.peak_tile_bytes - crowded.first.outcome.peak_tile_bytes
    assert saved > 0.5 * 2 * 4 * 3 * 512 * 512 / 16


def test_remedies_that_fit_come_first_and_cost_what_they_cost(crowded: Advice) -> None:
    fits = [each.outcome.fits for each in crowded.remedies]
    assert fits == sorted(fits, reverse=True)
    for each in crowded.remedies:
        again = model_graph(each.case.graph, each.case.target, each.case.options)
        assert again.simulation.peak_tile_bytes == each.outcome.peak_tile_bytes
        assert again.simulation.cost.cycles == each.outcome.cycles


def test_memory_by_role_adds_up_to_the_fullest_tile(crowded: Advice) -> None:
    (memory,) = crowded.memory
    assert sum(memory.bytes_by_role.values()) == crowded.outcome.peak_tile_bytes
    weights, states = 3 * 512 * 512 * 2 / 16, 2 * 3 * 512 * 512 * 4 / 16
    assert memory.bytes_by_role["weights"] == pytest.approx(weights, rel=0.05)
    assert memory.bytes_by_role["optimiser state"] == pytest.approx(states, rel=0.05)


def test_a_model_too_large_for_a_chip_is_split_over_several() -> None:
    advice = advise_case(stack_case(8))
    assert advice.first is not None
    count = advice.first.outcome.num_chips
    assert f"a pipeline over {count} IPUs" in advice.first.changes
    blocks = "".join(advice.first.how).count("poptorch.BeginBlock(model.layers[")
    assert blocks == count - 1 > 0
    assert follow(advice)


def test_a_case_comes_back_from_its_text() -> None:
    case = stack_case(2)
    assert parse_case(render_case(case)) == case


def test_the_text_of_another_version_is_refused() -> None:
    data = json.loads(render_case(stack_case(1)))
    with pytest.raises(ReportError, match="format 7"):
        parse_case(json.dumps(data | {"format": 7}))


def test_advice_is_json_too(crowded: Advice) -> None:
    data = json.loads(json.dumps(crowded.to_json()))
    assert data["remedies"][0]["outcome"]["fits"] is True
    assert data["memory"][0]["bytes_by_role"]["weights"] > 0


def test_a_model_is_advised_on_as_it_is() -> None:
    case = stack_case(2)
    model = model_graph(case.graph, case.target, case.options)
    assert advise(model).outcome.peak_tile_bytes == model.simulation.peak_tile_bytes


def test_one_call_says_where_optimiser_state_lies() -> None:
    case = stack_case(3).with_options(replicas=2)
    moved = move_states_off_chip(case)
    assert moved is not None
    both = share_states(moved.case)
    assert both is not None
    # A second call would undo the first, so it says both.
    assert "useOnChipStorage(False).useReplicatedTensorSharding(True)" in both.how[0]
    assert "".join(moved.how).count("setOptimizerLocation") == 1


def head_case(num_words: int) -> Case:
    """One product of 64 rows with weights for so many words, on 16 tiles."""
    x, w, y = "f16[64,256]", f"f16[256,{num_words}]", f"f16[64,{num_words}]"
    graph = parse_graph(
        f'graph "head" {{\n  input %x : {x}\n  weight %w : {w}\n'
        f"  matmul %y : %y : {y} = (%x, %w) forward chip=0 stage=0\n  output %y\n}}\n"
    )
    return replace(stack_case(1), graph=graph).with_options(update=None)


def test_a_head_in_parts_takes_less_memory_at_a_time() -> None:
    case = head_case(4004)
    changed = cut_head(case)
    assert changed is not None
    # The least number from 4 on that divides 4004.
    assert "OutputChannels, 4)" in changed.how[0]
    whole, parts = (
        model_graph(each.graph, each.target, each.options).simulation
        for each in (case, changed.case)
    )
    assert parts.peak_tile_bytes < whole.peak_tile_bytes
    assert cut_head(changed.case) is None


def test_only_wide_weights_that_can_be_cut_are() -> None:
    assert cut_head(head_case(1024)) is None  # a feed-forward layer
    assert cut_head(head_case(2053)) is None  # a prime


def test_what_is_captured_anew_is_changed_afterwards() -> None:
    # The chip is too small for anything, so all changes are tried together.
    case = stack_case(4, num_tiles=2, rows=2048)
    case = replace(case, rebatch=lambda size: stack_case(4, 2, size))
    together = max(advise_case(case).remedies, key=lambda each: len(each.changes))
    assert together.changes[0] == "half the micro-batch"
    assert together.case.options.memory.states_off_chip is not None


def test_an_option_that_two_changes_set_is_said_once() -> None:
    # Halved batches and a pipeline of eight stages each ask for accumulation.
    case = replace(stack_case(8), rebatch=lambda size: stack_case(8, rows=size))
    half = shrink_micro_batch(2)(case)
    assert half is not None
    split = split_over(4)(half.case)
    assert split is not None
    assert half.how[-1] == "options.Training.gradientAccumulation(2)"
    assert split.how[-1] == "options.Training.gradientAccumulation(7)"
    assert merged_words([half.how, split.how]) == (half.how[0], *split.how)
