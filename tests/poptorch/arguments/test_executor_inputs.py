"""Inputs of a call: nested, constant, converted, written to, refused."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import Scale, options

X = torch.ones(2)


class Calls(nn.Module):
    """Runs a function of its inputs."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, a: Any, b: Any = None, c: Any = 2) -> Any:
        return self.function(a, b, c)


def model(function: Any, d: int = 1) -> poptorch.PoplarExecutor:
    return poptorch.inferenceModel(Calls(function), options(d=d))


def test_nested_inputs_are_split_and_put_together() -> None:
    run = model(lambda a, b, c: a[0] + a[1]["k"], d=2)
    x, y = torch.arange(4.0), 10 * torch.arange(4.0)
    assert run((x, {"k": y})).tolist() == [0, 11, 22, 33]


def test_keywords_defaults_and_none_are_compiled_in() -> None:
    run = model(lambda a, b, c: a * c if b is None else a + b)
    assert run(X).tolist() == [2, 2]
    assert run(X, None, c=2).tolist() == [2, 2]
    with pytest.raises(poptorch.Error, match="mismatch for c: expected 2 but got 3"):
        run(X, None, 3)
    with pytest.raises(poptorch.Error, match=r"Type mismatch for b"):
        run(X, X)


def test_later_calls_must_match_the_first() -> None:
    run = model(lambda a, b, c: a * 1)
    run(X)
    with pytest.raises(poptorch.Error, match=r"torch\.Size\(\[2\]\) but got"):
        run(torch.ones(3))
    with pytest.raises(poptorch.Error, match=r"torch\.float32 but got torch\.int64"):
        run(torch.ones(2, dtype=torch.int64))


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (torch.float64, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float16),
        (torch.int32, torch.int32),
        (torch.bool, torch.bool),
    ],
    ids=str,
)
def test_types_the_device_lacks_are_converted(given: Any, seen: Any) -> None:
    types: list[torch.dtype] = []

    def look(a: Tensor, b: Any, c: Any) -> Tensor:
        types.append(a.dtype)
        return a.clone()

    out = model(look)(torch.ones(2).to(given))
    assert types == [seen]
    assert out.dtype is seen


def test_64_bit_integers_come_back_with_32() -> None:
    out = model(lambda a, b, c: a + 1)(torch.tensor([1, 2]))
    assert (out.dtype, out.tolist()) == (torch.int32, [2, 3])


def test_writes_to_an_input_reach_the_callers_tensor() -> None:
    run = model(lambda a, b, c: a.add_(1) * 1, d=2)
    floats, integers = torch.zeros(4), torch.zeros(4, dtype=torch.int32)
    run(floats)
    assert floats.tolist() == [1, 1, 1, 1]
    model(lambda a, b, c: a.add_(1) * 1, d=2)(integers)
    assert integers.tolist() == [1, 1, 1, 1]


def test_plain_attribute_tensors_are_constants() -> None:
    table = torch.tensor([1.0, 2.0])
    run = model(lambda a, b, c: a * table)
    run(X)
    other = model(lambda a, b, c: table.add_(a) * 1)
    assert [other(X).tolist() for _ in range(2)] == [[2, 3], [2, 3]]
    assert table.tolist() == [1, 2]


def test_integer_buffers_are_constants() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

        def forward(self, x: Tensor) -> Tensor:
            (count,) = self.buffers()
            count.add_(1)
            return x * count

    run = poptorch.inferenceModel(Counts(), options())
    assert [run(X).tolist() for _ in range(2)] == [[1, 1], [1, 1]]


def test_float_buffers_persist_between_calls_and_iterations() -> None:
    class Sums(Scale):
        def forward(self, x: Tensor) -> Tensor:
            (seen,) = self.buffers()
            seen.add_(x)
            return seen

    run = poptorch.inferenceModel(Sums(), options(d=2))
    x = torch.tensor([1.0, 1.0, 2.0, 2.0])
    assert run(x).tolist() == [1, 1, 3, 3]
    assert run(x).tolist() == [4, 4, 6, 6]


def test_an_input_that_wants_a_gradient_is_detached(
    caplog: pytest.LogCaptureFixture,
) -> None:
    weight = torch.ones(2, requires_grad=True)
    logger = logging.getLogger("poptorch::python")
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger.addHandler(handler)
    try:
        out = model(lambda a, b, c: a * 2)(weight)
    finally:
        logger.removeHandler(handler)
    assert not out.requires_grad
    assert any("requires_grad" in text for text in records)


def test_zero_sized_tensors_are_refused() -> None:
    with pytest.raises(poptorch.Error, match="Zero-sized tensors are unsupported"):
        model(lambda a, b, c: a)(torch.ones(0, 2))


@pytest.mark.parametrize("size", [3, 5])
def test_a_batch_that_cannot_be_split_is_refused(size: int) -> None:
    with pytest.raises(AssertionError, match="Invalid batch dimension") as error:
        model(lambda a, b, c: a, d=2)(torch.ones(size))
    assert "deviceIterations (2)" in str(error.value)


def test_every_tensor_is_split_even_one_without_a_batch() -> None:
    with pytest.raises(AssertionError, match="Invalid batch dimension"):
        model(lambda a, b, c: a * b, d=2)(torch.ones(2), torch.ones(()))


def test_integer_division_of_shapes_is_resolved_while_tracing() -> None:
    # Python sees the micro-batch, not the batch.
    sizes: list[int] = []
    model(lambda a, b, c: sizes.append(len(a)) or a * 1, d=4)(torch.ones(8))
    assert sizes == [2]
