"""What a layer records for its gradient: whoever does it, the tape says the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from popple.capture.torch.gru_tape import GruTape
from popple.capture.torch.recurrent_tape import (
    Tape,
    _AutogradTape,
    _OneDnnTape,
    infer,
    record_tape,
)

NUM_GATES = {"lstm": 4, "gru": 3}
Layer = tuple[Tensor, list[Tensor], list[Tensor], str]

onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)


def arguments(kind: str = "lstm", has_biases: bool = True, **options: Any) -> Layer:
    """A layer of 3 features and 5 units over 7 steps of 2 sequences."""
    torch.manual_seed(0)
    rows = 5 * NUM_GATES[kind]
    shapes = [(rows, 3), (rows, 5), (rows,), (rows,)][: 4 if has_biases else 2]
    states = [torch.randn(2, 5, **options) for _ in range(2 if kind == "lstm" else 1)]
    weights = [torch.randn(shape, **options) for shape in shapes]
    return torch.randn(7, 2, 3, **options), states, weights, kind


def strided(tensor: Tensor) -> Tensor:
    """The same values, its last axis first in memory."""
    return tensor.movedim(-1, 0).contiguous().movedim(0, -1)


def gradients(tape: Tape, layer: Layer) -> list[Tensor]:
    """Those of a loss in which every result counts, and no two alike."""
    torch.manual_seed(1)
    x, states, weights, _ = layer
    given = [strided(torch.randn_like(r)) for r in tape.results()]
    return tape.gradients(given, [x, *states, *weights])


@onednn
@pytest.mark.parametrize("has_biases", [True, False])
@pytest.mark.parametrize("is_strided", [True, False])
def test_kernels_called_directly_give_what_autograd_gives(
    has_biases: bool, is_strided: bool
) -> None:
    x, states, weights, kind = arguments(has_biases=has_biases)
    if is_strided:
        x, *states = map(strided, (x, *states))
        weights = [*map(strided, weights[:2]), *weights[2:]]
    ours = record_tape(x, states, weights, kind)
    theirs = _AutogradTape.record(x, states, weights, kind)
    assert isinstance(ours, _OneDnnTape)
    layer = (x, states, weights, kind)
    made, expected = gradients(ours, layer), gradients(theirs, layer)
    assert len(made) == 3 + len(weights)
    for mine, its in zip(made, expected, strict=True):
        assert torch.equal(mine, its)
    assert all(map(torch.equal, ours.results(), theirs.results()))


@pytest.mark.parametrize("has_biases", [True, False])
@pytest.mark.parametrize("is_strided", [True, False])
def test_a_gru_gives_what_autograd_gives(has_biases: bool, is_strided: bool) -> None:
    x, states, weights, kind = arguments("gru", has_biases)
    if is_strided:
        x, *states = map(strided, (x, *states))
        weights = [*map(strided, weights[:2]), *weights[2:]]
    ours = record_tape(x, states, weights, kind)
    theirs = _AutogradTape.record(x, states, weights, kind)
    assert isinstance(ours, GruTape)
    torch.testing.assert_close(ours.results(), theirs.results())
    layer = (x, states, weights, kind)
    torch.testing.assert_close(gradients(ours, layer), gradients(theirs, layer))


@onednn
def test_one_tensor_may_be_both_states() -> None:
    x, (state, _), weights, kind = arguments()
    ours = record_tape(x, [state, state], weights, kind)
    theirs = _AutogradTape.record(x, [state, state.clone()], weights, kind)
    layer = (x, [state, state], weights, kind)
    torch.testing.assert_close(gradients(ours, layer), gradients(theirs, layer))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_results_may_be_overwritten(kind: str) -> None:
    layer = arguments(kind)
    tape, untouched = (record_tape(*layer) for _ in range(2))
    for result in tape.results():
        result.fill_(float("nan"))
    torch.testing.assert_close(gradients(tape, layer), gradients(untouched, layer))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_what_was_read_may_be_elsewhere_by_then(kind: str) -> None:
    layer, same = arguments(kind), arguments(kind)
    tape, untouched = record_tape(*layer), record_tape(*same)
    for memory in (layer[0], *layer[1]):
        memory.fill_(float("nan"))
    torch.testing.assert_close(gradients(tape, same), gradients(untouched, same))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_gradients_share_no_memory(kind: str) -> None:
    layer = arguments(kind)
    made = gradients(record_tape(*layer), layer)
    assert len({each.untyped_storage().data_ptr() for each in made}) == len(made)


@pytest.mark.parametrize(
    "given",
    [
        arguments("gru", dtype=torch.float64),
        arguments(dtype=torch.float64),
        arguments(dtype=torch.float16),
        (torch.zeros(7, 0, 3), [torch.zeros(0, 5)] * 2, *arguments()[2:]),
    ],
    ids=["gru", "double", "half", "empty"],
)
def test_what_is_not_plain_is_left_to_torch(given: Any) -> None:
    assert isinstance(record_tape(*given), _AutogradTape)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("has_biases", [True, False])
def test_inference_gives_what_torch_gives(kind: str, has_biases: bool) -> None:
    x, states, weights, _ = arguments(kind, has_biases)
    made = infer(strided(x), states, weights, kind)
    given: Any = tuple(s[None] for s in states) if kind == "lstm" else states[0][None]
    settings = (weights, has_biases, 1, 0.0, False, False, False)
    outputs, *last = getattr(torch, kind)(x, given, *settings)
    expected = [outputs, *(each.squeeze(0) for each in last)]
    assert all(map(torch.equal, made, expected))
    taken = {each.untyped_storage().data_ptr() for each in (x, *states, *made)}
    assert len(taken) == 1 + len(states) + len(made)


def test_onednn_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    assert isinstance(record_tape(*arguments()), _AutogradTape)


def test_tensors_of_two_types_are_refused_as_torch_does() -> None:
    x, states, weights, kind = arguments()
    with pytest.raises((RuntimeError, ValueError), match="dtype"):
        record_tape(x, [state.double() for state in states], weights, kind)
