"""What a notebook needs of an application, and the end of every notebook."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from popple.notebook import Application, ArgumentParser, is_notebook, release_devices


class Toy:
    """An application without a framework: a number is its checkpoint."""

    def __init__(self) -> None:
        self.weight, self.data, self.saved = 1, [1, 2], ""

    def change_checkpoint(self, checkpoint: Any) -> None:
        self.weight = int(checkpoint)

    def change_dataset(self, dataset: Any) -> None:
        self.data = list(dataset)

    def save_checkpoint(self, path: Any) -> None:
        self.saved = str(path)

    def evaluate(self) -> Mapping[str, float]:
        return {"sum": float(self.weight * sum(self.data))}

    def close(self) -> None:
        self.data = []


class Model:
    """As much of a PopTorch model as is asked for."""

    def __init__(self, is_attached: bool) -> None:
        self.is_attached, self.num_calls = is_attached, 0

    def isAttachedToDevice(self) -> bool:
        return self.is_attached

    def detachFromDevice(self) -> None:
        self.num_calls += 1


def test_the_four_actions_of_a_reader() -> None:
    application = Toy()
    assert isinstance(application, Application)
    assert application.evaluate() == {"sum": 3.0}
    application.change_checkpoint("2")
    application.change_dataset([5])
    assert application.evaluate() == {"sum": 10.0}
    assert not isinstance(Model(True), Application)


def test_only_attached_models_are_detached() -> None:
    attached, free = Model(True), Model(False)
    release_devices(attached, free)
    assert (attached.num_calls, free.num_calls) == (1, 0)


def test_outside_a_notebook_the_command_line_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parser = ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    monkeypatch.setattr(sys, "argv", ["program.py", "--epochs", "5"])
    assert not is_notebook()
    assert parser.parse_args().epochs == 5
