"""From the options of TensorFlow programs to the core's: the one place for it.

Every option is in exactly one table of `_option_tables`: it is translated, refused, or
without effect. Here is what the translated ones become (for those that say how a
program is modelled or how it computes), and how programs hear of the others: an option
without effect that a program sets is named once in TensorFlow's log.

The planner is imported where it is asked for: most programs only run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorflow_ipu import _notices
from tensorflow_ipu._option_tables import REFUSED, TRANSLATED, WITHOUT_EFFECT

if TYPE_CHECKING:
    from tensorflow.python.ipu._modelling.program_settings import ProgramSettings

    from popple.capture.tensorflow import LoweredProgram
    from popple.graph import DType, Graph
    from popple.options import MemoryOptions, ModelOptions, UpdateOptions
    from popple.plan import IoOptions, PlanOptions
    from tensorflow_ipu._types import DTypeLike, IpuOptions

__all__ = [
    "REFUSED",
    "TRANSLATED",
    "WITHOUT_EFFECT",
    "Arithmetic",
    "arithmetic_of",
    "model_options",
    "note_if_set",
    "note_without_effect",
    "off_chip_words",
    "refuse_listed",
    "with_chip_order",
]

_ELEMENT_BYTES = 4

# What lies off the chip, by the argument that says so: the words that programs are
# marked with. Left to the compiler (None) it stays on the chip.
_OFF_CHIP = {
    "offload_weight_update_variables": "states",
    "replicated_optimizer_state_sharding": "shared",
    "offload_activations": "stashes",
    "offload_gradient_accumulation_buffers": "accumulators",
    "offload_weights": "weights",
}


@dataclass(frozen=True)
class Arithmetic:
    """How a device computes: what stops a run, and how float16 results are rounded."""

    stops_at_invalid: bool = False
    stops_at_zero: bool = False
    stops_at_overflow: bool = False
    rounds_at_random: bool = False
    nan_on_overflow: bool = False

    @property
    def stops_somewhere(self) -> bool:
        """Whether results have to be looked at while a program runs."""
        return self.stops_at_invalid or self.stops_at_zero or self.stops_at_overflow


def arithmetic_of(configured: IpuOptions) -> Arithmetic:
    """The arithmetic that `floating_point_behaviour` asks for."""
    behaviour = configured.floating_point_behaviour
    return Arithmetic(
        stops_at_invalid=behaviour.inv,
        stops_at_zero=behaviour.div0,
        stops_at_overflow=behaviour.oflo,
        # Of its two ways the one for identical replicas differs in which replicas
        # draw the same numbers, and here each draws its own.
        rounds_at_random=bool(behaviour.esr),
        nan_on_overflow=behaviour.nanoo,
    )


def off_chip_words(arguments: Mapping[str, Any]) -> str:
    """What lies off the chip, for the marks of a program."""
    return " ".join(word for name, word in _OFF_CHIP.items() if arguments.get(name))


def model_options(
    lowered: LoweredProgram, settings: ProgramSettings, configured: IpuOptions
) -> ModelOptions:
    """How the captured graph is repeated, placed and planned."""
    from tensorflow.python.ipu._modelling.op_options import op_options
    from tensorflow.python.ipu.ops._pipeline.schedules import PipelineSchedule

    from popple.graph import Strategy
    from popple.options import ModelOptions

    is_sequential = lowered.schedule == PipelineSchedule.Sequential
    is_overlapped = lowered.num_stages > 1 and not is_sequential
    recompute = settings.recompute
    if recompute is None:
        recompute = configured.speed_size_config.allow_recompute
    return ModelOptions(
        strategy=Strategy.PIPELINED if is_overlapped else Strategy.SHARDED,
        accumulation=lowered.accumulation,
        replicas=settings.num_replicas,
        device_iterations=max(1, lowered.num_trips // lowered.accumulation),
        micro_batch=lowered.micro_batch,
        recompute=recompute,
        merged_bytes=_merged_bytes(lowered.off_chip, configured),
        interleaved=lowered.schedule == PipelineSchedule.Interleaved,
        update=_update_options(lowered, settings.accumulator_dtype),
        memory=_memory_options(lowered.off_chip, configured),
        ops=op_options(configured, lowered.stage_options),
        layers_as_one=not configured.clear_matmul_pass_type,
        plan=_plan_options(configured, lowered.num_stages > 1),
    )


def _merged_bytes(off_chip: frozenset[str], configured: IpuOptions) -> int:
    """Bytes up to which collectives are merged: the model has one limit for all.

    Where updates are shared out gradients are summed by reduce-scatters.
    """
    if "shared" in off_chip:
        return configured.max_reduce_scatter_buffer_size
    return configured.max_cross_replica_sum_buffer_size


def _update_options(lowered: LoweredProgram, dtype: DTypeLike) -> UpdateOptions | None:
    from popple.options import UpdateOptions

    if lowered.update is None:
        return None
    kind, num_states = lowered.update
    own = _type_of_weights(lowered)
    return UpdateOptions(
        kind=kind,
        num_states=num_states,
        gradients=lowered.gradients,
        state_dtypes=(own,) * num_states,
        accumulator_dtype=own if dtype is None else _core_dtype(dtype),
    )


def _memory_options(off_chip: frozenset[str], configured: IpuOptions) -> MemoryOptions:
    """What programs say about tensors off the chip; small ones stay."""
    from popple.options import MemoryOptions

    least = configured.minimum_remote_tensor_size // _ELEMENT_BYTES

    def limit(word: str) -> int | None:
        return least if word in off_chip else None

    return MemoryOptions(
        weights_off_chip=limit("weights"),
        states_off_chip=limit("states"),
        accumulators_off_chip=limit("accumulators"),
        stashes_off_chip=limit("stashes"),
        shared_updates=limit("shared"),
    )


def _type_of_weights(lowered: LoweredProgram) -> DType:
    """The element type that most elements of weights have."""
    from popple.graph import DType, Role

    sizes: Counter[DType] = Counter()
    for weight in lowered.graph.with_role(Role.WEIGHT):
        sizes[weight.type.dtype] += weight.type.num_elements
    return max(sizes, key=lambda kind: sizes[kind], default=DType.F32)


def _core_dtype(dtype: DTypeLike) -> DType:
    import tensorflow.compat.v2 as tf

    from popple.graph import DType

    return DType.F16 if tf.as_dtype(dtype) == tf.float16 else DType.F32


def _plan_options(configured: IpuOptions, is_pipeline: bool) -> PlanOptions:
    """What is said about all ops; `_modelling.op_options` is about some."""
    from popple.plan import PlanOptions

    return PlanOptions(
        outline=not configured.speed_size_config.disable_graph_outlining,
        io=_io_options(configured, is_pipeline),
        stable_statistics=configured.use_stable_norm_statistics,
    )


def _io_options(configured: IpuOptions, is_pipeline: bool) -> IoOptions:
    """Pipelines have their feeds on I/O tiles, where ops are placed there at all."""
    from popple.plan import IoOptions, Overlap

    is_beside = configured.place_ops_on_io_tiles and is_pipeline
    overlap = Overlap.MICRO_BATCHES if is_beside else Overlap.NONE
    return IoOptions(configured.num_io_tiles, overlap)


def with_chip_order(graph: Graph, configured: IpuOptions) -> Graph:
    """The graph with its shards on the IPUs that `selection_order` puts them on.

    Functions stand on no chip: they run where the ops are that run them.
    """
    order = _chip_order(configured.selection_order, graph.execution.num_chips)
    return graph.with_ops(op.with_place(order[op.chip], op.stage) for op in graph.ops)


def _chip_order(selection_order: int, num_chips: int) -> Sequence[int]:
    """The chip of each shard; two chips are a rung of the ladder that links them."""
    from tensorflow.python.ipu._config.enums import SelectionOrder

    chips = list(range(num_chips))
    if selection_order == SelectionOrder.SNAKE.value and num_chips % 2 == 0:
        return [chip ^ 1 if chip // 2 % 2 else chip for chip in chips]
    if selection_order == SelectionOrder.HOOF.value and num_chips % 2 == 0:
        return [*chips[::2], *chips[1::2][::-1]]
    return chips


# Options that were named in the log of this process.
_NAMED: set[str] = set()


def note_without_effect(option: str, part: str = "") -> None:
    """Name an option without effect in TensorFlow's log, the first time it is set.

    `part` is what a star stands for in the table, the name of an option of Poplar.
    """
    name = option.replace("*", part)
    if option in WITHOUT_EFFECT and name not in _NAMED:
        _NAMED.add(name)
        _notices.warn(f"{name} has no effect: {WITHOUT_EFFECT[option]}.")


def note_if_set(owner: str, **given: tuple[Any, Any]) -> None:
    """Name those of an owner's options that differ from their default.

    Each is given as its value and its default.
    """
    for name, (value, default) in given.items():
        if value != default:
            note_without_effect(f"{owner}.{name}")


def refuse_listed(owner: str, kwargs: Mapping[str, Any], where: str) -> None:
    """Refuse keywords that an owner does not take; `where` is what they are called."""
    for key in kwargs:
        if why := REFUSED.get(f"{owner}.{key}"):
            raise ValueError(f"Found `{key}` key in `{where}`. {why}")
