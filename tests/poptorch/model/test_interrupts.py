"""Ctrl-C and threads at any moment of compiling and running: the process goes on."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import options


class Net(nn.Module):
    """Enough for modes of all kinds: random numbers, statistics, attention."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.0), nn.Linear(8, 2)
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(self.layers(x), y)


X, Y = torch.ones(8, 4), torch.zeros(8, 2)


@pytest.fixture(autouse=True)
def _python_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class _Press:
    """Presses Ctrl-C at the n-th call of a Python or C function."""

    def __init__(self, moment: int) -> None:
        self.left = moment

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        self.left -= 1
        if self.left == 0:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)


def train(moment: int) -> tuple[poptorch.PoplarExecutor, int]:
    """Two calls of a new model with Ctrl-C at a moment; how many moments were left."""
    torch.manual_seed(0)
    model = poptorch.trainingModel(Net(), options(d=2))
    press = _Press(moment)
    sys.setprofile(press)
    try:
        model(X, Y)
        model(X, Y)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return model, press.left


def expected() -> list[float]:
    """The losses of calls that nobody interrupts."""
    model, _ = train(-1)
    losses = [model(X, Y).item() for _ in range(3)]
    model.destroy()
    return losses


def test_any_moment_will_do() -> None:
    known = expected()  # before moments are counted: the first model imports modules
    model, left = train(-1)
    model.destroy()
    num_moments = -1 - left
    assert num_moments > 1000
    generator = torch.Generator().manual_seed(0)
    moments = torch.randint(1, num_moments, (8,), generator=generator).tolist()
    for moment in moments:
        model, left = train(moment)
        assert left <= 0  # it was pressed
        assert model(X, Y).isfinite()
        model.destroy()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert not torch.compiler.is_compiling()
    assert expected() == known


def test_weights_are_those_of_whole_updates() -> None:
    """Of four updates in a call, one press in the second leaves two."""
    module = nn.Linear(1, 1, bias=False)
    model = poptorch.trainingModel(_Loss(module), options(d=4))
    model.compile(torch.ones(4, 1))
    seen = []

    session = model._executable.session  # type: ignore[union-attr]
    split = session.split

    def pressing(inputs: Any) -> Iterator[Any]:
        for number, batch in enumerate(split(inputs)):
            seen.append(number)
            if number == 1:
                signal.raise_signal(signal.SIGINT)
            yield batch

    session.split = pressing  # type: ignore[method-assign]
    start = module.weight.item()
    with pytest.raises(KeyboardInterrupt):
        model(torch.ones(4, 1))
    assert seen == [0, 1]
    # The gradient is 1, the learning rate 0.01, and two updates were made.
    assert module.weight.item() == pytest.approx(start - 0.02)


class _Loss(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return poptorch.identity_loss(self.layer(x), "sum")


def test_four_threads_compile() -> None:
    failures: list[str] = []

    def compile_some(first: int) -> None:
        for number in range(first, first + 4):
            layer = nn.Linear(3, number + 1)
            model = poptorch.inferenceModel(layer, options())
            found, plain = model(X[:, :3]), layer(X[:, :3])
            model.destroy()
            if not torch.allclose(found, plain):
                failures.append(f"{number}: other numbers")

    def guarded(first: int) -> None:
        try:
            compile_some(first)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
            failures.append(repr(error))

    threads = [threading.Thread(target=guarded, args=(4 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
