"""From a traced TensorFlow program to a Graph.

In: a function's graph, or a part of an old-style graph. Out: a LoweredProgram: the
Graph of one micro-batch, which gradient belongs to which weight, how often the
program's own loops run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from popple.capture.tensorflow.builder import GraphBuilder
from popple.capture.tensorflow.control.old_style import OLD_CONTROL
from popple.capture.tensorflow.control.table import CONTROL
from popple.capture.tensorflow.control.unread import without_unread_results
from popple.capture.tensorflow.effects import Effects, Update
from popple.capture.tensorflow.framework import (
    Operation,
    Tensor,
    TensorFlowGraph,
    captured_variables,
    is_function_graph,
    static_shape,
)
from popple.capture.tensorflow.gradients import (
    GradientSearch,
    settle_phases,
    without_replaced,
)
from popple.capture.tensorflow.known import Known, Resource
from popple.capture.tensorflow.order import needed_ops
from popple.capture.tensorflow.places import with_places
from popple.capture.tensorflow.repetition import as_repeated
from popple.capture.tensorflow.types import is_on_machine, tensor_type
from popple.capture.tensorflow.units import MarkedUnits
from popple.capture.tensorflow.walk import Environment, Surroundings, Walker
from popple.graph import Graph, Role, batch_of
from popple.place import RemoveDead


@dataclass(frozen=True)
class LowerRequest:
    """A traced program and how it is going to be repeated.

    `graph` is the body of a function; or an old-style graph, of which `ops` are the
    program and `results`, tensors and operations, what it is run for.
    `device_mapping` lists the chips of pipeline stages. With more than one
    `accumulation` the program adds up gradients itself, with more than one `replicas`
    it sums them over replicas: both are left to the passes of `place`.
    """

    name: str
    graph: TensorFlowGraph
    ops: Sequence[Operation] | None = None
    results: Sequence[Tensor | Operation] = ()
    device_mapping: Sequence[int] = ()
    accumulation: int = 1
    replicas: int = 1


@dataclass(frozen=True)
class LoweredProgram:
    """The Graph of one micro-batch and what the program does with it.

    `gradients` maps trained weights to gradients; `update` is the op of the Graph that
    updates them, with the number of state tensors it keeps. `num_trips` micro-batches
    run in all, `accumulation` of them for each update. `schedule` is the front end's
    number for how pipeline stages take turns, `off_chip` its words for what lies off
    the chip, `stage_options` its text about the ops of stages. `remarks` are on
    what could not be known. Inputs in `fed` come from an infeed, outputs in `enqueued`
    go to an outfeed.
    """

    graph: Graph
    gradients: Mapping[str, str]
    update: tuple[str, int] | None
    num_trips: int
    accumulation: int
    micro_batch: int
    schedule: int | None = None
    off_chip: frozenset[str] = frozenset()
    stage_options: str = ""
    remarks: tuple[str, ...] = ()
    fed: frozenset[str] = frozenset()
    enqueued: frozenset[str] = frozenset()

    @property
    def num_stages(self) -> int:
        """Pipeline stages of the forward pass."""
        return len({op.stage for op in self.graph.ops}) or 1


def lower_program(request: LowerRequest) -> LoweredProgram:
    """The Graph of a traced program, without optimiser and repetition."""
    builder = GraphBuilder()
    effects = Effects(builder)
    control = {**CONTROL, **OLD_CONTROL}
    walker = Walker(builder, effects, control, MarkedUnits(), replicas=request.replicas)
    results = [known for known in _walk(request, walker) if isinstance(known, str)]
    accumulation = _accumulation(request, walker)
    # Gradients are searched in the graph as it is repeated: ops outside of all loops
    # are gone or in the update by then.
    whole = _whole_graph(request, walker, results)
    graph, gradients = _with_gradients(
        whole, effects, results, accumulation > 1, request.replicas > 1
    )
    return LoweredProgram(
        graph=graph,
        gradients=gradients,
        update=_main_update(list(effects.updates.values()), whole),
        num_trips=math.prod(walker.trips),
        accumulation=accumulation,
        micro_batch=batch_of([graph.type_of(n).shape for n in _fed(graph, walker)]),
        schedule=effects.schedule,
        off_chip=effects.off_chip,
        stage_options=effects.stage_options,
        remarks=tuple(walker.remarks),
        fed=frozenset(effects.fed),
        enqueued=frozenset(effects.outputs),
    )


def _walk(request: LowerRequest, walker: Walker) -> Sequence[Known]:
    """What the program's results are, with all of it written to the builder."""
    graph = request.graph
    if is_function_graph(graph) and request.ops is None:
        inputs = _function_inputs(graph, walker.builder)
        return walker.walk_graph(graph, inputs, Surroundings())
    ops = graph.get_operations() if request.ops is None else request.ops
    tensors = [result for result in request.results if hasattr(result, "op")]
    roots = [getattr(result, "op", result) for result in request.results]
    roots += [op for op in ops if op.type == "StackPushV2"]  # read by another loop
    found: Environment = {}
    walker.walk_ops(needed_ops(ops, roots), found, Surroundings())
    return [found.get(id(tensor)) for tensor in tensors]


def _function_inputs(graph: TensorFlowGraph, builder: GraphBuilder) -> list[Known]:
    """Variables by name, captured tensors as constants, arguments as inputs."""
    captured = {id(internal): external for external, internal in graph.captures}
    resources = _captured_resources(graph)
    found: list[Known] = []
    for tensor in graph.inputs:
        external = captured.get(id(tensor))
        shape = static_shape(tensor)
        if not is_on_machine(tensor.dtype):
            found.append(resources.get(id(external)) or Resource(tensor.op.name))
        elif external is not None and hasattr(external, "numpy"):
            found.append(np.asarray(external.numpy()))
        elif shape is None:
            found.append(None)
        else:
            kind = tensor_type(tensor.dtype, shape)
            found.append(builder.declare(tensor.op.name, kind, Role.INPUT))
    return found


def _captured_resources(graph: TensorFlowGraph) -> dict[int, Resource]:
    """The variables of a function by the id of their handles, with names of their own.

    Several variables of a program may have the same name.
    """
    counts: Counter[str] = Counter()
    resources: dict[int, Resource] = {}
    for handle, (name, is_trained) in captured_variables(graph).items():
        counts[name] += 1
        unique = name if counts[name] == 1 else f"{name}_{counts[name]}"
        resources[handle] = Resource(unique, is_trained)
    return resources


def _accumulation(request: LowerRequest, walker: Walker) -> int:
    """Micro-batches per update: as said, or the trips of a loop inside the update's."""
    effects = walker.effects
    if (said := max(request.accumulation, effects.accumulation)) > 1:
        return said
    depths = [update.loop_depth for update in effects.updates.values()]
    return math.prod(walker.trips[max(depths) :]) if depths else 1


def _whole_graph(
    request: LowerRequest, walker: Walker, results: Sequence[str]
) -> Graph:
    """Everything that was walked, in its place.

    What a program returns goes to the host once, after its loops; without loops that
    is after every micro-batch.
    """
    builder = walker.builder
    returned = [] if walker.trips else results
    outputs = tuple(dict.fromkeys([*walker.effects.outputs, *returned]))
    graph = Graph(
        request.name,
        builder.values,
        tuple(builder.ops),
        outputs,
        functions=builder.functions,
    )
    placed = with_places(graph, builder.marks, request.device_mapping)
    depths = [mark.depth for mark in builder.marks]
    updates = walker.effects.updates.values()
    return as_repeated(placed, depths, [update.gradient for update in updates])


def _with_gradients(
    graph: Graph,
    effects: Effects,
    results: Sequence[str],
    is_accumulated: bool,
    is_replicated: bool,
) -> tuple[Graph, dict[str, str]]:
    """What is left of the graph once gradients are found and dead ops gone."""
    search = GradientSearch(graph, is_accumulated, is_replicated)
    updates = effects.updates
    found = {effects.names[n]: search.find(u.gradient) for n, u in updates.items()}
    gradients = {weight: search.instead_of(name) for weight, name in found.items()}
    settled = settle_phases(without_replaced(graph, search), gradients.values())
    # What the update does to gradients stays alive although nothing in the Graph reads
    # it yet: the optimiser's op is written by a pass of `place`.
    kept = [*results, *(update.gradient for update in updates.values())]
    kept = [name for name in kept if name in graph.values]
    roots = frozenset({*map(search.instead_of, kept), *gradients.values()})
    live = RemoveDead(roots).apply(without_unread_results(settled, roots))
    read = _without_unread(live, {*gradients, *gradients.values()})
    # Counted again, since ops that are gone may have been alone on the last chip.
    num_chips = 1 + max((op.chip for op in read.ops), default=0)
    execution = replace(read.execution, num_chips=num_chips)
    return replace(read, execution=execution), gradients


def _without_unread(graph: Graph, updated: set[str]) -> Graph:
    """The graph without variables and constants that nothing reads.

    `updated` are weights and their gradients, which the update will read.
    """
    read = {name for op in graph.ops for name in op.inputs} | set(graph.outputs)
    read |= {value.storage for value in graph.values.values()} | updated
    values = {
        name: value
        for name, value in graph.values.items()
        if value.role in (Role.ACTIVATION, Role.INPUT) or name in read
    }
    return replace(graph, values=values)


def _main_update(updates: Sequence[Update], graph: Graph) -> tuple[str, int] | None:
    """The optimiser's op that updates most elements."""
    sizes: Counter[tuple[str, int]] = Counter()
    for update in updates:
        size = graph.type_of(update.gradient).num_elements
        sizes[update.kind, update.num_states] += size
    # Programs with several optimisers are modelled with one; the choice is by elements,
    # because these make the cost of an update.
    return max(sizes, key=lambda kind: sizes[kind], default=None)


def _fed(graph: Graph, walker: Walker) -> list[str]:
    """Inputs that are others for every micro-batch.

    What a program with a loop of its own is called with is there for all trips: first
    states, numbers. Without such a loop every call is one micro-batch.
    """
    if walker.trips or walker.effects.fed:
        return [name for name in walker.effects.fed if name in graph.values]
    return [value.name for value in graph.with_role(Role.INPUT)]
