"""What functions in graphs save: loops of any length, and layers written as calls.

    python benchmarks/functions.py

A loop of 1,000 rounds against one of 10, for PopTorch and for TensorFlow: seconds of
capture and planning, and modelled cycles. Then 96 equal layers of a transformer as
calls of one function, against one layer and as many calls of a function that does next
to nothing: seconds of planning in a process that has planned nothing before. Each
figure is the least of several runs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

# This folder has scripts with the facades' names: look beside them instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402

import popple  # noqa: E402
import poptorch  # noqa: E402
from benchmarks.modelling import HIDDEN, SEQUENCE, Layer  # noqa: E402
from popple.graph import Graph, Op  # noqa: E402
from popple.options import ModelOptions  # noqa: E402
from popple.pipeline import Modelled, passes_of  # noqa: E402
from popple.place import run_passes  # noqa: E402
from popple.plan import PlanOptions, plan_graph  # noqa: E402
from popple.target import Target, load_target  # noqa: E402

FEW, MANY, LAYERS = 10, 1000, 96

Timed = tuple[float, Modelled]


class Looping(torch.nn.Module):
    """A layer that is applied again and again by `poptorch.for_loop`."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.layer = torch.nn.Linear(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply it."""

        def body(y: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.layer(y))

        return poptorch.for_loop(self.rounds, body, [x])[0]


def poptorch_loop(rounds: int) -> Timed:
    """A PopTorch program with a loop, compiled and modelled."""
    options = poptorch.Options().showCompilationProgressBar(False)
    options.useOfflineIpuTarget()
    model = poptorch.inferenceModel(Looping(rounds), options)
    start = time.perf_counter()
    model.compile(torch.zeros(16, 256))
    modelled = popple.modelled(model)
    spent = time.perf_counter() - start
    return spent - modelled.seconds["simulate"], modelled


def tensorflow_loop(rounds: int) -> Timed:
    """A TensorFlow program with a loop, captured and modelled after it has run."""
    import tensorflow as tf
    from tensorflow.python import ipu

    strategy = ipu.ipu_strategy.IPUStrategy()
    weight = tf.ones((256, 256))

    @tf.function
    def program(x: Any) -> Any:
        return tf.while_loop(
            lambda i, y: i < rounds,
            lambda i, y: (i + 1, tf.tanh(y @ weight)),
            [0, x],
            maximum_iterations=rounds,
        )[1]

    with strategy.scope():
        strategy.run(program, [tf.zeros((16, 256))])
        start = time.perf_counter()
        modelled = popple.modelled(strategy)
        spent = time.perf_counter() - start
        return spent - modelled.seconds["simulate"], modelled


def layers(count: int) -> Graph:
    """So many equal layers in a row, as PopTorch captures them."""
    model = torch.nn.Sequential(*(Layer() for _ in range(count))).half()
    options = poptorch.Options().showCompilationProgressBar(False)
    options.useOfflineIpuTarget()
    inference = poptorch.inferenceModel(model, options)
    inference.compile(torch.zeros(1, SEQUENCE, HIDDEN).half())
    return inference._get_compiled().cost.request.graph


def compare_loops(measure: Callable[[int], Timed], runs: int) -> None:
    """Print the least time and the modelled cycles of two loops, and their ratios."""
    measure(FEW)  # what is imported first belongs to neither
    found = [(measure(FEW), measure(MANY)) for _ in range(runs)]
    few, many = (min(pair[n][0] for pair in found) for n in range(2))
    cycles = [found[0][n][1].simulation.cost.cycles for n in range(2)]
    print(f"  {FEW} rounds: {few:.3f} s, {cycles[0]:,} cycles")
    print(f"  {MANY} rounds: {many:.3f} s, {cycles[1]:,} cycles")
    print(f"  time {many / few:.2f}x")


def compare_layers(runs: int) -> None:
    """Print what planning many equal layers takes, as calls of one function."""
    options = ModelOptions(outlined_layers=True)
    graphs = [run_passes(layers(n), passes_of(options)) for n in (1, LAYERS)]
    parts = dict(zip(("one", "many"), graphs, strict=True))
    parts["calls"] = with_idle_functions(parts["many"])
    least = {name: min(plan_afresh(graph, runs)) for name, graph in parts.items()}
    print(f"  one layer: {least['one']:.3f} s")
    print(
        f"  {LAYERS} calls of a function that does next to nothing: "
        f"{least['calls']:.3f} s"
    )
    print(
        f"  {LAYERS} layers as calls: {least['many']:.3f} s, "
        f"{least['many'] / (least['one'] + least['calls']):.2f}x the sum"
    )


def with_idle_functions(graph: Graph) -> Graph:
    """The graph with functions that only change the sign of their first argument."""
    return replace(
        graph, functions={name: _idle(body) for name, body in graph.functions.items()}
    )


def _idle(body: Graph) -> Graph:
    (output,) = body.outputs
    kept = {*body.arguments, output}
    values = {name: value for name, value in body.values.items() if name in kept}
    first = next(n for n in body.arguments if body.type_of(n) == body.type_of(output))
    return replace(body, values=values, ops=(Op("negate", "neg", (first,), (output,)),))


def plan_afresh(graph: Graph, runs: int) -> list[float]:
    """Seconds of planning, each in a process that has planned nothing before."""
    target = load_target("bow")
    forked = multiprocessing.get_context("fork")
    with forked.Pool(1, maxtasksperchild=1) as pool:
        return [pool.apply(_plan, (graph, target)) for _ in range(runs)]


def _plan(graph: Graph, target: Target) -> float:
    start = time.perf_counter()
    plan_graph(graph, target, PlanOptions())
    return time.perf_counter() - start


def main() -> None:
    """Print all comparisons."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print("poptorch.for_loop: capture and plan")
    compare_loops(poptorch_loop, runs)
    print("tf.while_loop: capture and plan")
    compare_loops(tensorflow_loop, runs)
    print("equal layers: plan")
    compare_layers(runs)


if __name__ == "__main__":
    main()
