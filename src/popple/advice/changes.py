"""Changes: each one thing a user can do about memory, as a change of a case.

In: a case. Out: the changed case with what to write in the program, or None where the
change does not apply or is made already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from popple.advice.split import find_layers, split_graph
from popple.case import Case
from popple.graph import (
    DType,
    Graph,
    Op,
    Phase,
    Role,
    SerialSplit,
    SplitDimension,
    Strategy,
    get_op,
)
from popple.options import MemoryOptions

_SMALL_PROPORTION = 0.15
# PopART's least sizes: smaller tensors are not worth their transfers.
_MIN_OFF_CHIP = 2
_MIN_SHARED = 8192
_WIDE = 4
"""A feed-forward layer has four columns for each row; a head over words far more."""
_MIN_PARTS = 4
"""The vendor's programs cut the head of a language model into 2 to 8 parts."""


@dataclass(frozen=True)
class Changed:
    """A changed case, and how a program makes the change, option by option."""

    case: Case
    how: tuple[str, ...]


def merged_words(hows: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """What to write for several changes, made in this order: each option once."""
    # A later call of an option holds what an earlier one said, too.
    said: dict[str, str] = {}
    for text in (text for how in hows for text in how):
        name = _called(text)
        said.pop(name, None)
        said[name] = text
    return tuple(said.values())


def _called(how: str) -> str:
    """What is called or set to make a change, without its arguments."""
    name, _, value = how.partition("(" if how.startswith("options.") else "=")
    return name if value else how


class Turn(IntEnum):
    """When a change is made, of several: what is captured anew loses all changes of
    the graph and of options; splits count where states lie."""

    CAPTURE = 0
    STATES = 1
    SPLIT = 2
    OTHER = 3


@dataclass(frozen=True)
class Change:
    """A change by its name."""

    name: str
    apply: Callable[[Case], Changed | None]
    turn: Turn = Turn.OTHER


def _words(case: Case, poptorch: str, tensorflow: str) -> str:
    return tensorflow if case.framework == "tensorflow" else poptorch


def _location(memory: MemoryOptions) -> str:
    """The one call that says where optimiser state lies: a second one would undo it."""
    where = "poptorch.TensorLocationSettings()"
    if memory.states_off_chip is not None:
        where += ".useOnChipStorage(False)"
    if memory.shared_updates is not None:
        where += ".useReplicatedTensorSharding(True)"
    return f"options.TensorLocations.setOptimizerLocation({where})"


def move_states_off_chip(case: Case) -> Changed | None:
    """Optimiser state in streaming memory, loaded for the update."""
    options = case.options
    is_done = options.memory.states_off_chip is not None
    if options.update is None or not options.update.num_states or is_done:
        return None
    memory = replace(options.memory, states_off_chip=_MIN_OFF_CHIP)
    how = _words(case, _location(memory), "offload_weight_update_variables=True")
    return Changed(case.with_options(memory=memory), (how,))


def share_states(case: Case) -> Changed | None:
    """Each replica keeps a share of the optimiser state."""
    options = case.options
    is_done = options.memory.shared_updates is not None
    has_states = options.update is not None and options.update.num_states
    if not has_states or is_done or options.replicas == 1:
        return None
    memory = replace(options.memory, shared_updates=_MIN_SHARED)
    how = _words(case, _location(memory), "replicated_optimizer_state_sharding=True")
    return Changed(case.with_options(memory=memory), (how,))


def halve_accumulators(case: Case) -> Changed | None:
    """Gradients of half-precision weights accumulated in half precision."""
    update = case.options.update
    if update is None or case.options.accumulation == 1:
        return None
    is_half = update.accumulator_dtype is not DType.F32
    if is_half or not _has_half_weights(case):
        return None
    changed = replace(update, accumulator_dtype=DType.F16)
    how = _words(case, "accum_type=torch.float16", "accumulation in float16")
    return Changed(case.with_options(update=changed), (f"{how} in the optimiser",))


def halve_partials(case: Case) -> Changed | None:
    """Partial sums of half-precision products in half precision."""
    plan = case.options.plan
    if plan.partials == "f16" or not _has_half_products(case):
        return None
    how = _words(
        case,
        "options.Precision.setPartialsType(torch.half)",
        'config.matmuls.poplar_options["partialsType"] = "half"',
    )
    return Changed(case.with_options(plan=replace(plan, partials="f16")), (how,))


def lower_proportion(case: Case) -> Changed | None:
    """Plans of products and convolutions with less memory for temporaries."""
    plan = case.options.plan
    if plan.memory_proportion <= _SMALL_PROPORTION:
        return None
    low = _SMALL_PROPORTION
    how = _words(
        case,
        f'options.setAvailableMemoryProportion({{"IPU0": {low}, ...}})',
        f'config.matmuls.poplar_options["availableMemoryProportion"] = "{low}"',
    )
    changed = replace(plan, memory_proportion=low)
    return Changed(case.with_options(plan=changed), (how,))


def recompute(case: Case) -> Changed | None:
    """Activations computed again for the backward pass, from layer to layer."""
    options = case.options
    if not case.graph.is_training:
        return None
    if num_chips(case) > 1:
        return _recompute_stages(case)
    count = len(set(find_layers(case.graph).values()))
    split = split_graph(case.graph, options, count, one_chip=True)
    stages = {op.stage for op in case.graph.ops}
    if split is None or count < 2 or len(stages) > 1:
        return None
    changed = replace(case, graph=split.graph)
    changed = changed.with_options(recompute=True, strategy=Strategy.SHARDED)
    how = _words(
        case,
        'options._Popart.set("autoRecomputation", 4) and '
        "poptorch.recomputationCheckpoint on the output of every layer",
        "allow_recompute=True with a pipeline stage for every layer, all on one IPU",
    )
    return Changed(changed, (how,))


def _recompute_stages(case: Case) -> Changed | None:
    if case.options.recompute:
        return None
    how = _words(
        case,
        'options._Popart.set("autoRecomputation", 3)',
        "allow_recompute=True in config",
    )
    return Changed(case.with_options(recompute=True), (how,))


def add_checkpoints(case: Case) -> Changed | None:
    """Layers' results kept in a pipeline that recomputes: one layer at a time is."""
    is_pipeline = case.options.strategy is Strategy.PIPELINED and num_chips(case) > 1
    graph = case.graph
    if not (is_pipeline and case.options.recompute and graph.is_training):
        return None
    layer_of = find_layers(graph)
    leaving = _leaving(case, layer_of)
    marked = [op for op in graph.ops if op.notes.is_checkpoint]
    if marked or not leaving:
        return None
    ops = [
        replace(op, notes=replace(op.notes, is_checkpoint=True))
        if op.name in leaving
        else op
        for op in graph.ops
    ]
    how = _words(
        case,
        "poptorch.recomputationCheckpoint on the output of every layer",
        "pipelining_ops.recomputation_checkpoint on the output of every layer",
    )
    return Changed(replace(case, graph=graph.with_ops(ops)), (how,))


def cut_head(case: Case) -> Changed | None:
    """Products with the widest weights, those of a head over words, in parts."""
    graph = case.graph
    heads = {op.name: parts for op in graph.ops if (parts := _parts_of(op, graph))}
    # Layers of TensorFlow that compute a product in parts have weights of their own.
    if not heads or case.framework == "tensorflow":
        return None
    ops = [_cut(op, heads[op.name]) if op.name in heads else op for op in graph.ops]
    mode = "poptorch.MatMulSerializationMode.OutputChannels"
    parts = max(heads.values())
    how = f"poptorch.serializedMatMul(x, weight.t(), {mode}, {parts}) for the head"
    return Changed(replace(case, graph=graph.with_ops(ops)), (how,))


def _parts_of(op: Op, graph: Graph) -> int | None:
    """In how many parts a product over words can be; they have to be equal."""
    if op.kind != "matmul" or op.phase is not Phase.FORWARD or op.notes.serial_split:
        return None
    weight = op.inputs[1]
    rows, columns = graph.type_of(weight).shape[-2:]
    is_weight = graph.values[graph.root(weight)].role is Role.WEIGHT
    if not is_weight or columns <= _WIDE * rows:
        return None
    divisors = (n for n in range(_MIN_PARTS, columns // rows) if columns % n == 0)
    return next(divisors, None)


def _cut(op: Op, parts: int) -> Op:
    split = SerialSplit(SplitDimension.COLUMNS, parts)
    return replace(op, notes=replace(op.notes, serial_split=split))


def shrink_micro_batch(factor: int) -> Callable[[Case], Changed | None]:
    """Fewer samples at a time, in as many more micro-batches."""

    def apply(case: Case) -> Changed | None:
        size = case.options.micro_batch
        if case.rebatch is None or size % factor:
            return None
        small = size // factor
        changed = case.rebatch(small)
        if not case.graph.is_training:
            return Changed(changed, (f"a batch size of {small}",))
        times = factor * case.options.accumulation
        changed = changed.with_options(accumulation=times)
        how = f"a batch size of {small}", _accumulation_words(case, times)
        return Changed(changed, how)

    return apply


def split_over(count: int) -> Callable[[Case], Changed | None]:
    """A pipeline over so many chips."""

    def apply(case: Case) -> Changed | None:
        if count * case.options.replicas > case.target.system.num_chips:
            return None
        split = split_graph(case.graph, case.options, count)
        if split is None:
            return None
        target = case.target.with_chips(count)
        changed = replace(case, graph=split.graph, target=target).with_options(
            strategy=Strategy.PIPELINED,
            recompute=True,
            **_rounds(case, len(split.begins) + 1),
        )
        return Changed(changed, _split_words(case, split.begins, changed))

    return apply


def _rounds(case: Case, num_stages: int) -> dict[str, int]:
    """How often a pipeline runs at least: once for each of its stages."""
    options = case.options
    if case.graph.is_training:
        return {"accumulation": max(options.accumulation, 2 * num_stages - 1)}
    return {"device_iterations": max(options.device_iterations, num_stages)}


def _split_words(
    case: Case, begins: tuple[tuple[str, int], ...], changed: Case
) -> tuple[str, ...]:
    layers = [
        f"poptorch.BeginBlock({_in_python(name)}, ipu_id={chip})"
        for name, chip in begins
    ]
    if [chip for _, chip in begins] != sorted({chip for _, chip in begins}):
        kind = "poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement)"
        layers.append(f"options.setExecutionStrategy({kind})")
    stages = [
        f"stage {index} begins with {name}, on IPU {chip}"
        for index, (name, chip) in enumerate(begins, 1)
    ]
    text = _words(case, "; ".join(layers), "; ".join(stages))
    count = changed.options.accumulation
    if count == case.options.accumulation:
        return (text,)
    return text, _accumulation_words(case, count)


def _accumulation_words(case: Case, count: int) -> str:
    return _words(
        case,
        f"options.Training.gradientAccumulation({count})",
        f"gradient_accumulation_count={count}",
    )


def _in_python(module: str) -> str:
    """The path of a module as a program writes it: model.layers[3]."""
    words = module.split(".")
    return "model" + "".join(f"[{w}]" if w.isdigit() else f".{w}" for w in words)


def num_chips(case: Case) -> int:
    """Chips of a replica."""
    return 1 + max((op.chip for op in case.graph.ops), default=0)


CHANGES = (
    Change("half the micro-batch", shrink_micro_batch(2), Turn.CAPTURE),
    Change("optimiser state off the chip", move_states_off_chip, Turn.STATES),
    Change("optimiser state shared out over replicas", share_states, Turn.STATES),
    Change("accumulators in half precision", halve_accumulators),
    Change("recomputation", recompute),
    Change("a checkpoint after every layer", add_checkpoints),
    Change("the head in parts", cut_head),
    Change("half-precision partial sums", halve_partials),
    Change("less memory for temporaries of plans", lower_proportion),
)
"""What can be changed on the chips there are."""


def _has_half_weights(case: Case) -> bool:
    weights = case.graph.with_role(Role.WEIGHT)
    return any(value.type.dtype is DType.F16 for value in weights)


def _has_half_products(case: Case) -> bool:
    graph = case.graph
    return any(
        get_op(op.kind).family in ("matmul", "conv")
        and graph.type_of(op.inputs[0]).dtype is DType.F16
        for op in graph.ops
        if op.inputs
    )


def _leaving(case: Case, layer_of: dict[str, int]) -> set[str]:
    """Forward ops whose results another layer reads, and that own them."""
    graph = case.graph
    makers: dict[str, Op] = {n: op for op in graph.ops for n in op.outputs}
    found: set[str] = set()
    for op in graph.ops:
        if op.phase is not Phase.FORWARD:
            continue
        for name in op.inputs:
            maker = makers.get(graph.root(name))
            is_other = maker is not None and layer_of[maker.name] != layer_of[op.name]
            if maker is not None and is_other and maker.phase is Phase.FORWARD:
                found.add(maker.name)
    return found
