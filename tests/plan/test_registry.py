"""Every op of the table has a rule, and every rule keeps the promises of a plan."""

import pytest

from popple.errors import PlanError
from popple.graph import FAMILIES, OPS
from popple.plan import FAMILY_RULES, RULES, describe_rule, get_rule
from tests.plan.machines import (
    bow,
    bow_with_tiles,
    busy,
    linear_inputs,
    plan,
    vectors,
)
from tests.plan.signatures import signature_of

# What calls, loops and branches run belongs to a graph (lowering/test_control.py).
KINDS = sorted(kind for kind, op in OPS.items() if op.family != "control")
VIEWS = {kind for kind, op in OPS.items() if op.is_view}


def test_every_op_has_exactly_the_rule_of_its_family() -> None:
    for family, ops in FAMILIES.items():
        assert set(FAMILY_RULES[family]) == {op.name for op in ops}, family


def test_no_rule_without_op() -> None:
    assert set(RULES) == set(OPS)


def test_unknown_kind_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(PlanError, match="Did you mean 'matmul'"):
        get_rule("matmull")


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_says_in_a_sentence_how_it_plans(kind: str) -> None:
    assert describe_rule(kind).endswith(".")


@pytest.mark.parametrize("kind", KINDS)
def test_the_signatures_of_these_tests_are_legal(kind: str) -> None:
    assert OPS[kind].complaint(signature_of(kind)) == ""


@pytest.mark.parametrize("kind", sorted(set(KINDS) - VIEWS))
def test_results_are_mapped_completely(kind: str) -> None:
    signature = signature_of(kind)
    for tensor, mapping in zip(signature.outputs, plan(signature).outputs, strict=True):
        assert mapping.bytes_by_tile.total == tensor.num_bytes
        assert len(mapping.bytes_by_tile) == bow().chip.num_tiles


@pytest.mark.parametrize("kind", sorted(VIEWS))
def test_views_cost_nothing(kind: str) -> None:
    made = plan(signature_of(kind))
    assert made.steps == ()
    assert made.temporaries == ()
    assert made.flops == 0


@pytest.mark.parametrize("kind", sorted(set(KINDS) - VIEWS))
def test_work_takes_time(kind: str) -> None:
    assert busy(plan(signature_of(kind)).steps) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_equal_requests_have_equal_plans(kind: str) -> None:
    assert plan(signature_of(kind)) == plan(signature_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_nobody_laid_out_are_accepted(kind: str) -> None:
    signature = signature_of(kind)
    made = plan(signature, (None,) * len(signature.inputs))
    for tensor, wish in zip(signature.inputs, made.inputs, strict=False):
        assert wish is None or wish.bytes_by_tile.total == tensor.num_bytes


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_stay_short_on_ten_times_the_tiles(kind: str) -> None:
    signature = signature_of(kind)
    for num_tiles in (1472, 14720):
        target = bow_with_tiles(num_tiles)
        made = plan(signature, linear_inputs(signature, target), target)
        assert all(len(vector.runs) <= 16 for vector in vectors(made.steps))


@pytest.mark.parametrize("kind", KINDS)
def test_temporaries_lie_within_the_steps(kind: str) -> None:
    made = plan(signature_of(kind))
    for item in made.temporaries:
        assert 0 <= item.first <= item.last < len(made.steps)
        assert len(item.bytes_by_tile) == bow().chip.num_tiles
