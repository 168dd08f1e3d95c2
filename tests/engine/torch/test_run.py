"""Runs: micro-batches, replicas, accumulation and iterations as loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from popple.engine.torch import (
    AutomaticScaling,
    DeviceMemory,
    InferenceEngine,
    LossScale,
    ParameterGroup,
    Replay,
    TrainingEngine,
    UpdateRule,
)
from popple.errors import UsageError
from popple.session import Repetition

PLAIN = {"momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False}
RULE = UpdateRule("sgd", (ParameterGroup(("w",), {"lr": 1.0, **PLAIN}),))


def step_of(function: Callable[..., Sequence[Any]]) -> Replay:
    return Replay(function, frozenset())


def memory(num_buffer_sets: int = 1) -> DeviceMemory:
    buffers = [{"n": torch.zeros(())} for _ in range(num_buffer_sets)]
    return DeviceMemory({"w": torch.zeros(())}, buffers)


def batches(count: int) -> Iterator[list[Tensor]]:
    return ([torch.tensor(float(number))] for number in range(1, count + 1))


# Gives the weight it saw; its gradient is the input.
TRAIN = step_of(lambda w, n, x: [w.clone(), x])


def train(
    repetition: Repetition, count: int, num_sets: int = 1
) -> tuple[list[float], float]:
    """The weights that the micro-batches saw, and the last one."""
    held = memory(num_sets)
    engine = TrainingEngine(TRAIN, 1, ("w",), repetition)
    seen = [float(out) for (out,) in engine.run(held, RULE, batches(count))]
    return seen, float(held.weights["w"])


def test_each_micro_batch_is_an_update_without_accumulation() -> None:
    assert train(Repetition(), 3) == ([0, -1, -3], -6)


def test_an_update_takes_the_mean_of_its_micro_batches() -> None:
    seen, last = train(Repetition(accumulation=2, device_iterations=2), 4)
    # The first update takes the mean of 1 and 2, the second that of 3 and 4.
    assert seen == [0, 0, -1.5, -1.5]
    assert last == -5


def test_or_their_sum() -> None:
    assert train(Repetition(accumulation=2, is_mean=False), 2)[1] == -3


def test_replicas_count_like_micro_batches() -> None:
    repetition = Repetition(accumulation=2, replicas=2)
    assert repetition.micro_batches_per_update == 4
    assert train(repetition, 4)[1] == -2.5


def test_the_last_update_is_over_when_the_last_output_is_given() -> None:
    held = memory()
    engine = TrainingEngine(TRAIN, 1, ("w",), Repetition())
    next(engine.run(held, RULE, batches(1)))
    assert held.weights["w"].item() == -1


def test_gradients_may_be_views_that_repeat_elements() -> None:
    step = step_of(lambda w, n, x: [w.clone(), x.expand(3)])
    held = DeviceMemory({"w": torch.zeros(3)}, [{"n": torch.zeros(())}])
    engine = TrainingEngine(step, 1, ("w",), Repetition(accumulation=2))
    list(engine.run(held, RULE, batches(2)))
    assert held.weights["w"].tolist() == [-1.5, -1.5, -1.5]


def test_weights_without_a_gradient_are_left_alone() -> None:
    step = step_of(lambda w, n, x: [x, None])
    held = memory()
    engine = TrainingEngine(step, 1, ("w",), Repetition(accumulation=2))
    list(engine.run(held, RULE, batches(2)))
    assert held.weights["w"].item() == 0


def test_other_processes_take_part_in_the_sum() -> None:
    def reduce(gradients: list[Tensor]) -> list[Tensor]:
        return [gradient + 10 for gradient in gradients]  # what the other one has

    held = memory()
    repetition = Repetition(processes=2)
    engine = TrainingEngine(TRAIN, 1, ("w",), repetition, reduce)
    (x,) = [torch.tensor(2.0)]
    list(engine.run(held, RULE, iter([[x]])))
    assert held.weights["w"].item() == -6
    assert x.item() == 2.0


def test_replicas_are_added_as_processes_would_add_them() -> None:
    # In float32 the order shows: 1 is lost beside 2**24, but two of them together are
    # not. Replicas 0 and 1, 2 and 3 are added first, as two processes of two would.
    large = 2.0**24
    values = [[torch.tensor(v)] for v in (large, 0.0, 1.0, 1.0)]
    held = memory()
    engine = TrainingEngine(TRAIN, 1, ("w",), Repetition(replicas=4, is_mean=False))
    list(engine.run(held, RULE, iter(values)))
    assert held.weights["w"].item() == -(large + 2)


COUNT = step_of(lambda w, n, x: [n.add_(1).clone()])


@pytest.mark.parametrize(
    ("num_sets", "expected"), [(1, [1, 2, 3, 4]), (2, [1, 1, 2, 2])]
)
def test_replicas_share_buffers_or_have_their_own(
    num_sets: int, expected: list[int]
) -> None:
    engine = InferenceEngine(COUNT, 1, Repetition(replicas=2))
    outputs = engine.run(memory(num_sets), batches(4))
    assert [int(out) for (out,) in outputs] == expected


def test_inference_gives_only_outputs() -> None:
    step = step_of(lambda w, n, x: [x * 2, x * 3, x * 4])
    engine = InferenceEngine(step, 2, Repetition())
    assert [len(outputs) for outputs in engine.run(memory(), batches(2))] == [2, 2]


def test_outputs_carry_no_history() -> None:
    weight = torch.ones((), requires_grad=True)
    held = DeviceMemory({"w": weight}, [{}])
    engine = InferenceEngine(step_of(lambda w, x: [w * x]), 1, Repetition())
    ((out,),) = engine.run(held, batches(1))
    assert not out.requires_grad


@pytest.mark.parametrize("name", ["device_iterations", "accumulation", "replicas"])
def test_counts_are_at_least_one(name: str) -> None:
    settings: dict[str, Any] = {name: 0}
    with pytest.raises(UsageError, match=f"{name} must be at least 1"):
        Repetition(**settings)


def scaled_memory(automatic: AutomaticScaling | None = None) -> DeviceMemory:
    held = memory()
    held.loss_scale = LossScale(automatic)
    return held


def test_the_loss_scale_goes_in_and_is_taken_out() -> None:
    seen: list[float] = []

    def step(w: Tensor, n: Tensor, x: Tensor, scale: Tensor) -> list[Tensor]:
        seen.append(float(scale))
        return [w.clone(), x * scale]

    held = scaled_memory()
    rule = replace(RULE, loss_scaling=4.0)
    list(
        TrainingEngine(step_of(step), 1, ("w",), Repetition()).run(
            held, rule, batches(1)
        )
    )
    assert (seen, held.weights["w"].item()) == ([4.0], -1)


def test_the_loss_scale_adapts_after_each_update() -> None:
    # The third result is the share of large gradients: none below a scale of 4.
    step = step_of(lambda w, n, x, s: [s.clone(), x * s, (s >= 4).float()])
    held = scaled_memory(AutomaticScaling())
    engine = TrainingEngine(step, 1, ("w",), Repetition(accumulation=2))
    scales = [float(out) for (out,) in engine.run(held, RULE, batches(10))]
    assert scales == [1, 1, 2, 2, 4, 4, 2, 2, 4, 4]
    assert held.weights["w"].item() == -(1.5 + 3.5 + 5.5 + 7.5 + 9.5)


def test_a_running_mean_is_the_mean() -> None:
    repetition = Repetition(accumulation=4, is_running_mean=True)
    assert train(repetition, 4)[1] == -2.5
    assert train(replace(repetition, is_mean=False), 4)[1] == -10


def test_gradients_are_summed_in_the_type_of_the_accumulator() -> None:
    step = step_of(lambda w, n, x: [w.clone(), torch.tensor(60000.0).half()])
    held = memory()
    rule = replace(RULE, accumulator_type=torch.float32)
    engine = TrainingEngine(step, 1, ("w",), Repetition(accumulation=2))
    list(engine.run(held, rule, batches(2)))
    assert held.weights["w"].item() == -60000


def test_the_state_of_an_optimiser_is_made_once_and_when_asked_for() -> None:
    made: list[int] = []

    def make() -> dict[str, dict[str, torch.Tensor]]:
        made.append(1)
        return {"velocity": {"w": torch.zeros(3)}}

    held = DeviceMemory({"w": torch.zeros(3)}, [{}], make)
    assert not held.has_state
    assert not made
    held.state["velocity"]["w"] += 1
    assert held.state["velocity"]["w"].sum() == 3
    assert made == [1]
