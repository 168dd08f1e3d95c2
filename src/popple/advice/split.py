"""A concrete split of a program over chips, layer by layer.

In: a captured graph and a number of chips. Out: the same graph with each layer on a
chip of its own pipeline stage, and which layer begins each stage. Layers follow each
other as the forward pass runs them; parts are chosen so that the fullest chip, by an
estimate of what stays on it and what is stashed, is as empty as can be. The last layers
return to an earlier chip if they read weights that lie there, as a head does that is
tied to a table of words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from popple.graph import Graph, Op, Phase, Role, get_op
from popple.options import ModelOptions


@dataclass(frozen=True)
class Layer:
    """Neighbouring forward ops of one module: `kept` bytes stay on the chip for the
    whole run, `made` bytes are activations, `entering` bytes come from before; states
    of one weight of up to `updated` bytes come to the chip for its update."""

    name: str
    kept: int
    made: int
    entering: int
    updated: int = 0


@dataclass(frozen=True)
class Tail:
    """Layers from `first` on read weights of layer `owner`, and so lie on its chip."""

    owner: int
    first: int


@dataclass(frozen=True)
class Split:
    """A graph over several chips; `begins` are the layers that begin stages, each with
    the chip of its stage."""

    graph: Graph
    begins: tuple[tuple[str, int], ...]


def split_graph(
    graph: Graph, options: ModelOptions, num_chips: int, *, one_chip: bool = False
) -> Split | None:
    """The graph in a stage for each chip; None if it has fewer layers or cannot be cut.

    With `one_chip` the stages stay on the first chip, for recomputation between them.
    """
    layer_of = find_layers(graph)
    names = _names(graph, layer_of)
    tail = None if one_chip else find_tail(graph, layer_of)
    if (tail.first if tail else len(names)) < num_chips or graph.functions:
        return None
    layers = measure_layers(graph, options, layer_of, len(names))
    cuts = choose_cuts(layers, num_chips, tail)
    stage_of = _stages(len(names), cuts)
    chips = [0 if one_chip else stage for stage in range(len(cuts) + 1)]
    if tail:
        chips[-1] = stage_of[tail.owner]
    ops = _placed(graph, layer_of, stage_of, chips)
    execution = replace(graph.execution, num_chips=1 if one_chip else num_chips)
    begins = tuple(
        (names[cut], chip) for cut, chip in zip(cuts, chips[1:], strict=True)
    )
    return Split(replace(graph, ops=ops, execution=execution), begins)


def find_tail(graph: Graph, layer_of: dict[str, int]) -> Tail | None:
    """The last layers, from the first one on that reads weights of another layer."""
    owners: dict[str, int] = {}
    for op in _of_phase(graph, Phase.FORWARD):
        layer = layer_of[op.name]
        for root in map(graph.root, op.inputs):
            if graph.values[root].role is not Role.WEIGHT:
                continue
            if (owner := owners.setdefault(root, layer)) < layer:
                return Tail(owner, layer)
    return None


def find_layers(graph: Graph) -> dict[str, int]:
    """The number of the layer of every op, by the op's name.

    A layer is a run of forward ops in one numbered module (`layers.3`) or one child of
    the model. Backward ops belong to the layer of their module. Without one, or if it
    is used twice, they follow the gradients they read, else the activations.
    """
    numbers, by_unit = _forward_layers(graph)
    makers = {name: op for op in graph.ops for name in op.outputs}
    last = max(numbers.values(), default=0)
    for op in graph.ops:
        if op.phase is Phase.FORWARD:
            continue
        known = by_unit.get(unit_of(op.module), [])
        sources = [makers[name] for name in op.inputs if name in makers]
        behind = [numbers[s.name] for s in sources if s.phase is not Phase.FORWARD]
        before = [numbers[s.name] for s in sources if s.phase is Phase.FORWARD]
        followed = min(behind) if behind else max(before, default=last)
        numbers[op.name] = known[0] if len(known) == 1 else followed
    return numbers


def _forward_layers(graph: Graph) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Layers of forward ops, and the layers of each module."""
    numbers: dict[str, int] = {}
    by_unit: dict[str, list[int]] = {}
    current, unit = 0, ""
    for op in _of_phase(graph, Phase.FORWARD):
        # Ops outside any module go with what is before them, the first with the next.
        own = unit_of(op.module) or unit
        if own != unit:
            current, unit = current + bool(unit), own
            by_unit.setdefault(unit, []).append(current)
        numbers[op.name] = current
    return numbers, by_unit


def unit_of(module: str) -> str:
    """The layer a module is in: its path up to the first number, or its first name."""
    words = module.split(".")
    for index, word in enumerate(words):
        if word.isdigit():
            return ".".join(words[: index + 1])
    return words[0]


def measure_layers(
    graph: Graph, options: ModelOptions, layer_of: dict[str, int], count: int
) -> list[Layer]:
    """Bytes of every layer, by which parts are balanced."""
    kept, made, entering, updated = ([0] * count for _ in range(4))
    makers = {name: op for op in graph.ops for name in op.outputs}
    seen: set[str] = set()
    crossed: set[tuple[str, int]] = set()
    for op in _of_phase(graph, Phase.FORWARD):
        layer = layer_of[op.name]
        for name in op.inputs:
            root, source = graph.root(name), makers.get(name)
            role = graph.values[root].role
            if role is Role.WEIGHT and root not in seen:
                seen.add(root)
                kept[layer] += _kept_bytes(graph, options, root)
                states = _visiting_bytes(graph, options, root)
                updated[layer] = max(updated[layer], states)
            is_from_before = source is not None and layer_of[source.name] != layer
            if is_from_before and (name, layer) not in crossed:
                crossed.add((name, layer))
                entering[layer] += graph.type_of(name).num_bytes
        if not get_op(op.kind).is_view:
            made[layer] += sum(graph.type_of(n).num_bytes for n in op.outputs)
    sizes = zip(kept, made, entering, updated, strict=True)
    return [Layer(str(n), *each) for n, each in enumerate(sizes)]


def kept_bytes(graph: Graph, options: ModelOptions) -> int:
    """What stays on the chips for the whole run: at least this must fit."""
    weights = graph.with_role(Role.WEIGHT)
    return sum(_kept_bytes(graph, options, value.name) for value in weights)


def choose_cuts(
    layers: Sequence[Layer], num_chips: int, tail: Tail | None = None
) -> list[int]:
    """The layers that begin a stage, the first stage left out; the fullest chip is as
    empty as can be. A tail is a stage more."""
    last = [] if tail is None else list(layers[tail.first :])
    body = layers[: tail.first] if tail else layers
    num_stages = num_chips + bool(last)

    def cost(stage: int, first: int, end: int) -> int:
        # A stage keeps what enters it until the backward pass comes back to it.
        depth = 2 * (num_stages - 1 - stage) + 1
        is_shared = tail is not None and first <= tail.owner < end
        here = [*body[first:end], *(last if is_shared else [])]
        stays = sum(layer.kept for layer in here)
        # Forward and backward passes are over when weights are updated.
        largest = max(max(layer.made, layer.updated) for layer in here)
        return stays + depth * body[first].entering + largest

    cuts = list(_best(cost, num_chips, len(body)))
    return [*cuts, tail.first] if tail else cuts


def _best(
    cost: Callable[[int, int, int], int], num_stages: int, count: int
) -> tuple[int, ...]:
    """Cuts that make the dearest part cheapest."""

    @cache
    def find(stage: int, first: int) -> tuple[int, tuple[int, ...]]:
        if stage == num_stages - 1:
            return cost(stage, first, count), ()
        choices: list[tuple[int, tuple[int, ...]]] = []
        for end in range(first + 1, count - (num_stages - 2 - stage)):
            worst, cuts = find(stage + 1, end)
            choices.append((max(cost(stage, first, end), worst), (end, *cuts)))
        return min(choices)

    return find(0, 0)[1]


def _names(graph: Graph, layer_of: dict[str, int]) -> list[str]:
    names: dict[int, str] = {}
    for op in _of_phase(graph, Phase.FORWARD):
        number = layer_of[op.name]
        # Ops outside any module may begin a layer: the first named one names it.
        names[number] = names.get(number) or unit_of(op.module)
    return [names[number] for number in range(len(names))]


def _kept_bytes(graph: Graph, options: ModelOptions, weight: str) -> int:
    """A weight with what an update keeps for it on the chip."""
    kind = graph.type_of(weight)
    update = options.update
    if update is None or weight not in update.gradients:
        return kind.num_bytes
    is_on_chip = options.memory.states_off_chip is None
    states = _state_bytes(graph, options, weight) if is_on_chip else 0
    accumulator = update.accumulator_dtype or kind.dtype
    summed = accumulator.num_bytes if options.accumulation > 1 else 0
    return kind.num_bytes + states + summed * kind.num_elements


def _visiting_bytes(graph: Graph, options: ModelOptions, weight: str) -> int:
    """States of a weight that are on the chip for its update only."""
    is_on_chip = options.memory.states_off_chip is None
    return 0 if is_on_chip else _state_bytes(graph, options, weight)


def _state_bytes(graph: Graph, options: ModelOptions, weight: str) -> int:
    """States of a weight, or the share of them that a replica has."""
    update = options.update
    if update is None or weight not in update.gradients:
        return 0
    # States are in float numbers unless a program says else.
    size = 4 * update.num_states * graph.type_of(weight).num_elements
    is_shared = options.memory.shared_updates is not None
    return size // options.replicas if is_shared else size


def _stages(count: int, cuts: Sequence[int]) -> list[int]:
    return [sum(layer >= cut for cut in cuts) for layer in range(count)]


def _placed(
    graph: Graph, layer_of: dict[str, int], stage_of: list[int], chips: list[int]
) -> tuple[Op, ...]:
    """All ops in the stages of their layers; forward data flow to later ones only."""
    reached: dict[str, int] = {}
    ops: list[Op] = []
    for op in graph.ops:
        stage = stage_of[layer_of[op.name]]
        if op.phase is Phase.FORWARD:
            stage = max([stage, *(reached.get(name, 0) for name in op.inputs)])
            reached.update(dict.fromkeys(op.outputs, stage))
        ops.append(op.with_place(chips[stage], stage))
    return tuple(ops)


def _of_phase(graph: Graph, phase: Phase) -> list[Op]:
    return [op for op in graph.ops if op.phase is phase]
