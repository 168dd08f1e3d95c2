"""For architects: a computation written by hand as a Graph, modelled on several chips.

A Graph says what is computed and nothing about how. It can be written, printed and
compared as text; programs of frameworks are traced to the same form. Here it is one
head of attention: 128 queries look at a context that is kept on the chip.
"""

import popple
from popple.graph import parse_graph, verify

NUM_QUERIES = 128
HEAD_SIZE = 64
OPS = ("match", "weigh", "mix")

ATTENTION = """
graph "attention" {{
  input %queries : f16[{q},{d}]
  state %keys : f16[{d},{n}]
  state %values : f16[{n},{d}]
  matmul %match : %score : f16[{q},{n}] = (%queries, %keys) forward chip=0 stage=0
  softmax %weigh : %part : f16[{q},{n}] = (%score) {{"dim": 1}} forward chip=0 stage=0
  matmul %mix : %result : f16[{q},{d}] = (%part, %values) forward chip=0 stage=0
  output %result
}}
"""


def model_attention(context, target):
    """Plan and simulate the graph for a context of so many tokens."""
    graph = parse_graph(ATTENTION.format(q=NUM_QUERIES, d=HEAD_SIZE, n=context))
    verify(graph)
    return popple.model_graph(graph, popple.load_target(target))


def print_growth():
    """Work grows with the context, but a short context keeps few tiles busy."""
    first = {}
    for context in (1024, 4096, 16384):
        simulation = model_attention(context, "bow").simulation
        cycles = {name: simulation.cost_by_op[name].cycles for name in OPS}
        first = first or cycles
        growth = ", ".join(f"{name} x {cycles[name] / first[name]:.1f}" for name in OPS)
        print(f"context {context}: {growth}")


def print_plan():
    """Why an op costs what it costs: its plan, and the best one not taken."""
    why = popple.explain(model_attention(4096, "bow"), "mix")
    chosen, other = dict(why.plan.choice), why.plan.runners_up[0]
    print(f"mix: bound by {why.bound_by}, on {chosen['tiles']} tiles")
    print(f"  {chosen['method']}: {chosen['splits']}")
    print(f"  not taken, {other.slower_by:.0%} slower: {other.text}")


def print_chips():
    """The same graph on three generations of chips; host transfers left out."""
    for name in ("gc2", "gc200", "bow"):
        modelled = model_attention(16384, name)
        cost, chip = modelled.simulation.cost, modelled.target.chip
        cycles = cost.cycles - cost.host_cycles
        print(f"{name}: {cycles:,} cycles, {1e6 * cycles / chip.clock_hz:.1f} us")


def main():
    print_growth()
    print_plan()
    print_chips()


if __name__ == "__main__":
    main()
