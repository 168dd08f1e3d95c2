"""Dataclasses as JSON data and back."""

from __future__ import annotations

import json

from popple.graph import DType, Notes, Phase, Strategy
from popple.options import ModelOptions, OpOptions, UpdateOptions
from popple.plain import from_plain, to_plain
from popple.target import Target, load_target


def test_options_come_back() -> None:
    options = ModelOptions(
        strategy=Strategy.PIPELINED,
        accumulation=4,
        update=UpdateOptions("adam_update", 2, {"w": "g"}),
        ops=OpOptions(
            {"matmul": Notes(memory_proportion=0.2)},
            {(Phase.FORWARD, 1): {"conv": Notes(partials=DType.F16)}},
        ),
        synthetic=("x",),
    )
    data = json.loads(json.dumps(to_plain(options)))
    assert from_plain(ModelOptions, data) == options


def test_what_is_at_its_default_is_left_out() -> None:
    assert to_plain(ModelOptions(accumulation=2)) == {"accumulation": 2}


def test_a_target_comes_back() -> None:
    target = load_target("bow-pod16", 4, 2)
    assert from_plain(Target, json.loads(json.dumps(to_plain(target)))) == target
