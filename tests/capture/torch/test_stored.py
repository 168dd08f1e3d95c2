"""Traced steps as data: read again they are the same, and nothing else is believed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from popple.capture.torch import TracedStep, TraceRequest, trace_step
from popple.capture.torch.stored import (
    StoredStep,
    read_graph,
    read_step,
    store_graph,
    store_step,
)
from popple.capture.torch.stored_values import (
    NotStorable,
    find_operator,
    is_identifier,
    pack,
    unpack,
)
from popple.capture.torch.structures import pack_structure, unpack_structure
from popple.capture.torch.tensors import pack_tensors, unpack_tensors
from popple.engine.torch.replay import build_replay


class Net(nn.Module):
    """Views, in-place writes, several results, a constant, random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.table = torch.arange(6.0)

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        y = torch.dropout(self.norm(self.layer(x)), 0.5, True)
        values, places = torch.topk(y + self.table, 2)
        y[:, 0] = float("inf")
        return values, {"places": places, "all": y.t()}


def traced() -> TracedStep:
    torch.manual_seed(0)
    module = Net()
    return trace_step(
        TraceRequest(
            module=module,
            parameters={n: p.detach() for n, p in module.named_parameters()},
            buffers=dict(module.named_buffers()),
            inputs=[torch.ones(3, 4)],
        )
    )


def as_text(stored: StoredStep) -> dict[str, Any]:
    return json.loads(json.dumps(stored.data))


@pytest.fixture(scope="module")
def stored() -> StoredStep:
    return store_step(traced())


def test_a_step_comes_back_as_it_was(stored: StoredStep) -> None:
    step = read_step(StoredStep(as_text(stored), stored.constants))
    again = store_step(step)
    assert again.data == stored.data
    fresh = traced()
    sources = [build_replay(s.graph_module) for s in (fresh, step)]
    assert sources[0].function.__doc__ == sources[1].function.__doc__
    assert sources[0].shared_outputs == sources[1].shared_outputs


def test_a_replay_comes_back_as_it_was() -> None:
    step = traced()
    replay = build_replay(step.graph_module)
    assert replay.graph is not None
    data = json.loads(json.dumps(store_graph(replay.graph)))
    constants = store_step(step).constants
    module = read_graph(data, constants)
    assert store_graph(module.graph) == data


READER = """
import json, sys
from popple.capture.torch.stored import read_graph
from popple.engine.torch.straight_line import straight_line
straight_line(read_graph(json.loads(sys.argv[1]), {}))
print("torch._dynamo" in sys.modules)
"""


def test_a_replay_is_read_without_what_traces() -> None:
    # The import takes longer than all else that the start of a cached program does.
    graph = torch.fx.Graph()
    graph.output(
        [graph.call_function(torch.ops.aten.neg.default, (graph.placeholder("x"),))]
    )
    data = json.dumps(store_graph(graph))
    command = [sys.executable, "-c", READER, data]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


VALUES = [
    None,
    True,
    -3,
    0.1,
    float("-inf"),
    1 + 2j,
    "text",
    [1, (2, [3])],
    {"a": slice(None, 2)},
    torch.float16,
    torch.strided,
    torch.channels_last,
    torch.device("cpu"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_arguments_come_back(value: Any) -> None:
    assert unpack(json.loads(json.dumps(pack(value, lambda _: 0)))) == value


def test_objects_are_not_stored() -> None:
    with pytest.raises(NotStorable, match="takes a object"):
        pack(object(), lambda _: 0)


@pytest.mark.parametrize(
    "name",
    [
        "aten.from_file.default",
        "aten.add.nothing",
        "os.system.default",
        "aten.__class__.mro",
        "torch.ops.aten.add",
        "aten.add",
        "popple.host_call.default; import os",
        7,
    ],
)
def test_only_operators_over_tensors_are_found(name: Any) -> None:
    with pytest.raises((ValueError, AttributeError)):
        find_operator(name)


@pytest.mark.parametrize("name", ["x) or f(", "class", "a b", "1x", "", None, "é"])
def test_names_that_are_no_identifiers(name: Any) -> None:
    assert not is_identifier(name)


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a name that is code": lambda d: d["graph"]["nodes"][5].__setitem__(1, "x=f()"),
    "a name twice": lambda d: d["graph"]["nodes"][6].__setitem__(
        1, d["graph"]["nodes"][5][1]
    ),
    "an unknown kind": lambda d: d["graph"]["nodes"][5].__setitem__(0, "call_method"),
    "a later node": lambda d: d["graph"]["nodes"][8].__setitem__(3, [{"n": 99}]),
    "an operator of Python": lambda d: d["operators"].__setitem__(0, "builtins.eval"),
    "an unknown argument": lambda d: d["graph"]["nodes"][8].__setitem__(
        4, [["x=1, y", 1]]
    ),
    "no end": lambda d: d["graph"]["nodes"].pop(),
    "an unknown constant": lambda d: d["graph"]["nodes"].insert(
        8, ["get_attr", "zz", "training", [], [], None, None, None]
    ),
    "fewer parameters": lambda d: d["parameters"].clear(),
    "a negative size": lambda d: d["storages"].__setitem__(0, -1),
    "a text for a number": lambda d: d.__setitem__("num_outputs", "3"),
    "a type that is none": lambda d: d["graph"]["nodes"][0][5].__setitem__("d", "nn"),
    "a tag that is none": lambda d: d["tags"].__setitem__(0, ["sideways"]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changed_steps_are_refused(case: str, stored: StoredStep) -> None:
    data = as_text(stored)
    CHANGES[case](data)
    with pytest.raises(ValueError, match=r"."):
        read_step(StoredStep(data, stored.constants))


def _mutate(chance: random.Random, value: Any) -> Any:
    """The value with one of its parts replaced, repeated or dropped."""
    if isinstance(value, (list, dict)) and value and chance.random() < 0.95:
        keys: Any = range(len(value)) if isinstance(value, list) else list(value)
        key = chance.choice(keys)
        if chance.random() < 0.03:
            del value[key]
        else:
            value[key] = _mutate(chance, value[key])
        return value
    odd = [None, -1, 2**70, 1.5, "__import__('os')", [], {}, {"n": 3}, True, [value]]
    return chance.choice(odd)


def test_mutated_steps_are_refused_or_sound(stored: StoredStep) -> None:
    # Whatever is read can be made into a function: no error but ValueError, and
    # nothing of the data becomes code.
    text, chance = json.dumps(stored.data), random.Random(5)
    for _ in range(400):
        data = _mutate(chance, json.loads(text))
        try:
            step = read_step(StoredStep(data, stored.constants))
        except ValueError:
            continue
        source = build_replay(step.graph_module).function.__doc__ or ""
        assert "import" not in source.replace("'__import__", "").replace(
            '"__import__', ""
        )


def test_structures_come_back() -> None:
    structure = {"a": [torch.ones(2), (None, 1)], 3: "x"}
    found = unpack_structure(json.loads(json.dumps(pack_structure(structure))))
    assert found["a"][0].shape == (2,)
    assert found["a"][1] == (None, 1)
    assert found[3] == "x"
    with pytest.raises(NotStorable):
        pack_structure(object())


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3).t(),
        torch.ones(1).expand(4),
        torch.zeros(0, 3),
        torch.tensor(True),
        torch.arange(8)[2:6:2],
        torch.ones(2, dtype=torch.bfloat16),
        torch.tensor([1 + 2j]),
    ],
    ids=str,
)
def test_tensors_come_back(tensor: Tensor) -> None:
    rows, parts = pack_tensors({"x": tensor})
    rows = json.loads(json.dumps(rows))
    found = unpack_tensors(rows, lambda name: bytes(parts[name]))["x"]
    assert torch.equal(found, tensor)
    assert found.stride() == tensor.stride()
    assert found.dtype is tensor.dtype


@pytest.mark.parametrize(
    "row",
    [
        ["x", "float32", [3], [1], "p"],  # three numbers of which two are there
        ["x", "float32", [2], [2**61], "p"],
        ["x", "system", [2], [1], "p"],
        ["x", "float32", [2, 1], [1], "p"],
        ["x", "float32", [-2], [1], "p"],
        ["x", "float32", [2], [1]],
    ],
    ids=str,
)
def test_odd_tensors_are_refused(row: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack_tensors([row], lambda _: bytes(8))
