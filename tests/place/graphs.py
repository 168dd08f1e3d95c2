"""Small graphs in text form, and what must hold for every placed graph."""

from __future__ import annotations

from popple.graph import (
    NO_NOTES,
    DType,
    Graph,
    MultiConv,
    Notes,
    Op,
    Phase,
    Role,
    TensorType,
    Value,
    parse_graph,
    verify,
)
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
        for name in op.inputs:
            chip = chips.get(name, op.source_chip)
            assert chip == op.source_chip, (op.name, name)
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
        for name in op.inputs:
            if graph.values[name].role in (Role.WEIGHT, Role.STATE):
                home = homes.setdefault(name, op.source_chip)
                assert home == op.source_chip, (op.name, name)


def two_chips_updated() -> Graph:
    """`TWO_CHIPS` with plain SGD."""
    return run_passes(parse_graph(TWO_CHIPS), [SGD])


def sharded(text: str) -> Graph:
    """A graph in text form, sharded."""
    return run_passes(parse_graph(text), [Shard()])


FIELD, KERNEL = (4, 64, 16, 16), (64, 64, 1, 1)


def _half(name: str, shape: tuple[int, ...], role: Role = Role.ACTIVATION) -> Value:
    return Value(name, TensorType(DType.F16, shape), role)


def two_convolutions(group: str, chained: bool = False) -> Graph:
    """Two convolutions of a group with a gradient each, something between them."""
    window = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    notes = Notes(multi_conv=MultiConv(group)) if group else NO_NOTES
    second = "middle" if chained else "x1"
    ops = (
        Op("a", "conv", ("x0", "w0"), ("y0",), window, notes=notes),
        Op("relu", "relu", ("y0",), ("middle",)),
        Op("b", "conv", (second, "w1"), ("y1",), window, notes=notes),
        Op("ga", "conv_input_grad", ("y0", "w0"), ("g0",), window, Phase.BACKWARD),
        Op("gb", "conv_input_grad", ("y1", "w1"), ("g1",), window, Phase.BACKWARD),
    )
    given = [_half(n, FIELD, Role.STATE) for n in ("x0", "x1")]
    given += [_half(n, KERNEL, Role.WEIGHT) for n in ("w0", "w1")]
    made = [_half(n, FIELD) for n in ("y0", "middle", "y1", "g0", "g1")]
    values = {v.name: v for v in (*given, *made)}
    return Graph("g", values, ops, ("middle", "g0", "g1"))


BATCH, INPUTS, OUTPUTS = 8, 1000, 1000


def single(name: str, *shape: int, role: Role = Role.ACTIVATION, of: str = "") -> Value:
    """A value of single precision; `of` owns its memory."""
    return Value(name, TensorType(DType.F32, shape), role, of)


def linear_layer(inputs: int = INPUTS, outputs: int = OUTPUTS) -> Graph:
    """x @ w with both gradients, that of w as torch makes it: dy^T @ x."""
    turn = {"order": (1, 0)}
    ops = (
        Op("t", "permute", ("w",), ("wt",), turn),
        Op("forward", "matmul", ("x", "wt"), ("y",)),
        Op("input", "matmul", ("dy", "w"), ("dx",), phase=Phase.BACKWARD),
        Op("s", "permute", ("dy",), ("dyt",), turn, Phase.BACKWARD),
        Op("weight", "matmul", ("dyt", "x"), ("dw",), phase=Phase.BACKWARD),
        Op("step", "sgd_update", ("w", "dw"), ("w2",), phase=Phase.UPDATE),
    )
    values = (
        single("x", BATCH, inputs, role=Role.STATE),
        single("w", outputs, inputs, role=Role.WEIGHT),
        single("dy", BATCH, outputs, role=Role.STATE),
        single("wt", inputs, outputs, of="w"),
        single("dyt", outputs, BATCH, of="dy"),
        single("y", BATCH, outputs),
        single("dx", BATCH, inputs),
        single("dw", outputs, inputs),
        single("w2", outputs, inputs, of="w"),
    )
    return Graph("g", {v.name: v for v in values}, ops, ("y", "dx"))
