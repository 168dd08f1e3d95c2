"""UpdateWeights: one update op for each weight, where the weight is used first."""

from __future__ import annotations

import pytest

from popple.errors import GraphError
from popple.graph import DType, Graph, Phase, Role, parse_graph
from popple.place import UpdateWeights, run_passes
from tests.place.graphs import ONE_CHIP, named, two_chips_updated


def adam(*dtypes: DType | None) -> Graph:
    gradients = {"a": "da", "b": "db"}
    update = UpdateWeights("adam_update", 2, gradients, dtypes)
    return run_passes(parse_graph(ONE_CHIP), [update])


def test_an_update_reads_weight_gradient_and_states() -> None:
    op = named(adam(), "a.update")
    assert op.inputs == ("a", "da", "a.state0", "a.state1")
    assert op.phase is Phase.UPDATE


def test_results_overwrite_weight_and_states() -> None:
    graph = adam()
    owners = [graph.values[n].storage for n in named(graph, "a.update").outputs]
    assert owners == ["a", "a.state0", "a.state1"]


def test_states_have_the_shape_of_the_weight_and_types_of_their_own() -> None:
    values = adam(DType.F16, None).values
    assert (str(values["a.state0"].type), values["a.state0"].role) == (
        "f16[8,8]",
        Role.STATE,
    )
    assert str(values["a.state1"].type) == str(values["a"].type)


def test_states_without_a_type_have_single_precision() -> None:
    values = adam(DType.F16).values
    assert str(values["a.state1"].type) == "f32[8,8]"


def test_updates_stand_where_the_weight_is_first_used() -> None:
    graph = two_chips_updated()
    places = [(op.chip, op.stage) for op in graph.ops if op.phase is Phase.UPDATE]
    assert places == [(0, 0), (1, 1)]


def test_a_wrong_number_of_states_is_refused() -> None:
    update = UpdateWeights("adam_update", 1, {"a": "da"})
    with pytest.raises(GraphError, match=r"adam_update %a\.update takes 4 inputs"):
        run_passes(parse_graph(ONE_CHIP), [update])
