"""Repeated layers become calls: nothing is lost, equal layers share a function."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from popple.graph import Graph, Signature, num_sites, parse_graph, verify
from popple.place import Outline, run_passes

HEAD = 'graph "g" {{\n  input %x : f32[8,{width}]\n'


def layers(count: int, kinds: list[str], width: int = 16, extra: str = "") -> Graph:
    """Layers of a product and some element-wise ops, with a skip connection."""
    kind = f"f32[8,{width}]"
    lines = [f"  weight %w{i} : f32[{width},{width}]" for i in range(count)]
    source = "x"
    for i in range(count):
        lines.append(f"  matmul %m{i} : %m{i} : {kind} = (%{source}, %w{i}) {PLACE}")
        last = f"m{i}"
        for number, each in enumerate(kinds):
            name = f"{each}{i}_{number}"
            lines.append(f"  {each} %{name} : %{name} : {kind} = (%{last}) {PLACE}")
            last = name
        lines.append(f"  add %a{i} : %a{i} : {kind} = (%{last}, %{source}) {PLACE}")
        source = f"a{i}"
    tail = f"  output %{source}\n{extra}}}\n"
    graph = parse_graph(HEAD.format(width=width) + "\n".join(lines) + "\n" + tail)
    verify(graph)
    return graph


PLACE = "forward chip=0 stage=0"


def work_of(graph: Graph) -> Counter[Signature]:
    """How often each kind of work is done, functions as often as they are run."""
    sites = num_sites(graph)
    work: Counter[Signature] = Counter()
    for name, body in [("", graph), *graph.functions.items()]:
        for op in body.ops:
            if op.kind != "call":
                work[body.signature(op)] += sites[name] if name else 1
    return work


ELEMENTWISE = st.lists(st.sampled_from(["relu", "exp", "neg"]), min_size=1, max_size=6)


@given(st.integers(2, 12), ELEMENTWISE)
def test_nothing_is_lost(count: int, kinds: list[str]) -> None:
    graph = layers(count, kinds)
    outlined = run_passes(graph, [Outline(min_ops=3)])
    assert work_of(outlined) == work_of(graph)
    assert outlined.outputs == graph.outputs


def test_equal_layers_are_calls_of_one_function() -> None:
    graph = layers(24, ["relu", "exp", "neg"])
    outlined = run_passes(graph, [Outline(min_ops=4)])
    ((name, body),) = outlined.functions.items()
    # A layer has five ops; the first reads the input, so it may be part of the rest.
    assert len(body.ops) == 5
    assert num_sites(outlined)[name] >= 23
    assert len(body.arguments) == 2  # what came before, and the layer's weights


def test_short_stretches_stay() -> None:
    graph = layers(24, ["relu"])  # three ops a layer
    assert run_passes(graph, [Outline(min_ops=8)]) == graph


def test_what_differs_is_not_outlined() -> None:
    graph = layers(1, ["relu", "exp", "neg", "relu", "exp"])
    assert run_passes(graph, [Outline(min_ops=4)]) == graph


def test_results_that_are_asked_for_leave_the_function() -> None:
    graph = layers(6, ["relu", "exp", "neg"], extra="  output %m3\n")
    outlined = run_passes(graph, [Outline(min_ops=4)])
    assert "m3" in outlined.outputs
    assert work_of(outlined) == work_of(graph)
