"""Random graphs stay valid: what is computed does not depend on where."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from popple.graph import Graph, Phase, parse_graph, verify
from popple.place import (
    AccumulateGradients,
    Pipeline,
    Replicate,
    Shard,
    UpdateWeights,
    run_passes,
)
from tests.place.graphs import assert_staged

TRANSPORT = {"chip_copy", "stash", "restore"}


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """Layers with weights and skips over rising stages, and all their gradients."""
    num_layers = draw(st.integers(1, 6))
    stages = sorted(draw(st.integers(0, 3)) for _ in range(num_layers))
    num_chips = 1 + max(stages)
    lines = [f'graph "random" num_chips={num_chips} {{', "  input %v0 : f32[4]"]
    sources = [draw(st.integers(0, layer)) for layer in range(num_layers)]
    tied = draw(st.booleans())
    weights = [0 if tied else layer for layer in range(num_layers)]
    lines += [f"  weight %w{number} : f32[4]" for number in sorted(set(weights))]
    for layer, stage in enumerate(stages):
        inputs = f"(%v{sources[layer]}, %w{weights[layer]})"
        lines.append(_op("mul", f"v{layer + 1}", inputs, "forward", stage))
    lines.append(_op("fill", f"g{num_layers}", "()", "backward", stages[-1]))
    for layer in reversed(range(num_layers)):
        inputs = f"(%g{layer + 1}, %v{sources[layer]}, %w{weights[layer]})"
        op = _op("gelu_grad", f"g{layer}", inputs, "backward", stages[layer])
        lines.append(op)
    return parse_graph("\n".join([*lines, f"  output %v{num_layers}", "}"]))


def _op(kind: str, name: str, inputs: str, phase: str, stage: int) -> str:
    place = f"{phase} chip={stage} stage={stage}"
    return f"  {kind} %{name} : %{name} : f32[4] = {inputs} {place}"


def _work(graph: Graph) -> Counter[str]:
    return Counter(op.kind for op in graph.ops if op.kind not in TRANSPORT)


@given(networks(), st.booleans())
def test_pipelines_stay_valid_and_local(graph: Graph, recompute: bool) -> None:
    update = UpdateWeights("adam_update", 2, {"w0": "g0"})
    passes = [update, AccumulateGradients(4), Replicate(2), Pipeline(recompute)]
    assert_staged(run_passes(graph, passes))


@given(networks())
def test_without_recomputation_no_work_is_added_or_lost(graph: Graph) -> None:
    for placed in (Pipeline(recompute=False), Shard()):
        assert _work(run_passes(graph, [placed])) == _work(graph)


@given(networks())
def test_sharded_graphs_find_everything_on_their_chip(graph: Graph) -> None:
    placed = run_passes(graph, [Shard()])
    verify(placed)
    chips = {name: op.chip for op in placed.ops for name in op.outputs}
    for op in placed.ops:
        if op.kind != "chip_copy":
            assert all(chips.get(name, op.chip) == op.chip for name in op.inputs)


@given(networks())
def test_every_ring_is_pushed_once_and_popped_once(graph: Graph) -> None:
    placed = run_passes(graph, [Pipeline(recompute=False)])
    pushed = [op.outputs[0] for op in placed.ops if op.kind == "stash"]
    popped = [op.inputs[0] for op in placed.ops if op.kind == "restore"]
    assert sorted(pushed) == sorted(popped) == sorted(set(pushed))


@given(networks())
def test_stages_never_flow_backwards(graph: Graph) -> None:
    placed = run_passes(graph, [Pipeline()])
    made = {name: op.stage for op in placed.ops for name in op.outputs}
    for op in placed.ops:
        if op.phase is not Phase.UPDATE:
            assert all(made.get(name, 0) <= op.stage for name in op.inputs)
