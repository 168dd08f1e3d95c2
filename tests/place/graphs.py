"""Small graphs in text form, and what must hold for every placed graph."""

from __future__ import annotations

from popple.graph import Graph, Op, Phase, Role, parse_graph, verify
from popple.place import Shard, UpdateWeights, run_passes

# Two linear layers on two chips: x @ a | @ b, their backward pass, no update yet.
TWO_CHIPS = """
graph "two" num_chips=2 {
  input %x : f32[4,8]
  weight %a : f32[8,8]
  weight %b : f32[8,8]
  matmul %h : %h : f32[4,8] = (%x, %a) forward chip=0 stage=0 in "first" at "m.py:1"
  matmul %y : %y : f32[4,8] = (%h, %b) forward chip=1 stage=1 in "second" at "m.py:2"
  fill %dy : %dy : f32[4,8] = () backward chip=1 stage=1 at "m.py:2"
  permute %ht : %ht : f32[8,4] shares %h = (%h) backward chip=1 stage=1 at "m.py:2"
  matmul %db : %db : f32[8,8] = (%ht, %dy) backward chip=1 stage=1 at "m.py:2"
  permute %bt : %bt : f32[8,8] shares %b = (%b) backward chip=1 stage=1 at "m.py:2"
  matmul %dh : %dh : f32[4,8] = (%dy, %bt) backward chip=1 stage=1 at "m.py:2"
  permute %xt : %xt : f32[8,4] shares %x = (%x) backward chip=0 stage=0 at "m.py:1"
  matmul %da : %da : f32[8,8] = (%xt, %dh) backward chip=0 stage=0 at "m.py:1"
  output %y
}
"""

ONE_CHIP = """
graph "one" {
  input %x : f32[4,8]
  weight %a : f32[8,8]
  weight %b : f32[8,8]
  matmul %h : %h : f32[4,8] = (%x, %a) forward chip=0 stage=0
  fill %da : %da : f32[8,8] = () backward chip=0 stage=0 in "first" at "m.py:1"
  fill %db : %db : f32[8,8] = () backward chip=0 stage=0
  output %h
}
"""

SGD = UpdateWeights("sgd_update", 0, {"a": "da", "b": "db"})


def chain(*places: tuple[int, int], extra: str = "") -> Graph:
    """relu after relu, one on each (chip, stage), then the ops of `extra`."""
    chips = 1 + max(chip for chip, _ in places)
    lines = [f'graph "chain" num_chips={chips} {{', "  input %v0 : f32[4]"]
    for number, (chip, stage) in enumerate(places, start=1):
        lines.append(
            f"  relu %v{number} : %v{number} : f32[4] = (%v{number - 1}) "
            f'forward chip={chip} stage={stage} at "m.py:{number}"'
        )
    return parse_graph("\n".join([*lines, extra, f"  output %v{len(places)}", "}"]))


def ops_of(graph: Graph, kind: str) -> list[Op]:
    """All ops of one kind."""
    return [op for op in graph.ops if op.kind == kind]


def named(graph: Graph, name: str) -> Op:
    """The op called `name`."""
    (found,) = [op for op in graph.ops if op.name == name]
    return found


def assert_local(graph: Graph) -> None:
    """Valid, and every op finds what it reads on its own chip; weights have one home.

    A copy reads on the chip it copies from.
    """
    verify(graph)
    chips = {name: op.chip for op in graph.ops for name in op.outputs}
    for op in graph.ops:
        reads_on = op.attrs["source"] if op.kind == "chip_copy" else op.chip
        for name in op.inputs:
            assert chips.get(name, reads_on) == reads_on, (op.name, name)
    _assert_one_home_per_weight(graph)


def assert_staged(graph: Graph) -> None:
    """`assert_local`, and every op finds what it reads in its own stage.

    Rings connect stages, a copy serves the next one; updates run after all of them.
    """
    assert_local(graph)
    makers = {name: op for op in graph.ops for name in op.outputs}
    for op in graph.ops:
        if op.phase is Phase.UPDATE or op.kind == "restore":
            continue
        for name in op.inputs:
            maker = makers.get(name, op)
            is_next = op.stage == maker.stage + 1 or op.kind == "stash"
            arrived = maker.kind == "chip_copy" and is_next
            assert arrived or maker.stage == op.stage, (op.name, name)


def _assert_one_home_per_weight(graph: Graph) -> None:
    homes: dict[str, int] = {}
    for op in graph.ops:
        chip = int(str(op.attrs["source"])) if op.kind == "chip_copy" else op.chip
        for name in op.inputs:
            if graph.values[name].role in (Role.WEIGHT, Role.STATE):
                assert homes.setdefault(name, chip) == chip, (op.name, name)


def two_chips_updated() -> Graph:
    """`TWO_CHIPS` with plain SGD."""
    return run_passes(parse_graph(TWO_CHIPS), [SGD])


def sharded(text: str) -> Graph:
    """A graph in text form, sharded."""
    return run_passes(parse_graph(text), [Shard()])
