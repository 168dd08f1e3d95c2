"""Gradients of normalisations: the passes of poplin, in its order."""

from popple.plan import PlanOptions
from popple.plan.opplan import Compute, OpPlan, PlanRequest
from popple.plan.rules.norm import plan_norm
from tests.plan.machines import bow, linear_inputs, plan
from tests.plan.signatures import f16, f32, make

X, SCALE = f16(100, 64), f16(64)


def passes(made: OpPlan) -> list[str]:
    computed = [step.name for step in made.steps if isinstance(step, Compute)]
    return [name for name in computed if "/" not in name]


def gradient(has_scale: bool) -> OpPlan:
    scale = [SCALE] if has_scale else []
    inputs = [X, X, f32(100), f32(100), *scale]
    outputs = [X, *scale, *scale]
    return plan(make("layer_norm_grad", inputs, outputs, num_statistics=100))


def test_a_gradient_is_put_together_from_products_and_statistics() -> None:
    assert passes(gradient(False)) == [
        *("sub", "mul"),  # normalised again
        "mul",  # by the gradient, for the statistics
        *("gradient", "mul", "add", "add", "mul"),
    ]


def test_a_scale_adds_its_gradient_and_a_pass() -> None:
    assert len(passes(gradient(True))) == len(passes(gradient(False))) + 2


def test_the_normalised_input_is_held_to_the_end() -> None:
    made = gradient(False)
    (held,) = (t for t in made.temporaries if t.name == "normalised")
    assert (held.first, held.last) == (0, len(made.steps) - 1)


def test_stable_statistics_take_the_mean_away_first() -> None:
    signature = make("layer_norm", [X], [X, f32(100), f32(100)], num_statistics=100)
    given = linear_inputs(signature, bow())
    usual, stable = (
        passes(plan_norm(PlanRequest(signature, given, bow(), options)))
        for options in (PlanOptions(), PlanOptions(stable_statistics=True))
    )
    assert stable.index("sub") < stable.index("rsqrt")
    assert stable.count("sub") == usual.count("sub") + 1
