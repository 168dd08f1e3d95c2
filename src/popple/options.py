"""What facades ask of the core: how a graph is repeated, placed and planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from popple.errors import UsageError
from popple.graph import DType, Notes, Phase, Redone, Strategy
from popple.plan import PlanOptions


@dataclass(frozen=True)
class UpdateOptions:
    """The optimiser as the model sees it: kind of op and state per weight.

    `gradients` maps each trained weight to the value that is its gradient. States have
    the types `state_dtypes`, one by one; None, and what has no type there, is as in
    `UpdateWeights`. An accumulator without a type has that of its gradient.
    """

    kind: str
    num_states: int
    gradients: Mapping[str, str]
    state_dtypes: tuple[DType | None, ...] = ()
    accumulator_dtype: DType | None = DType.F32


@dataclass(frozen=True)
class MemoryOptions:
    """Which tensors lie off the chip or are shared out over replicas.

    Each number is the fewest elements a tensor has that does; None is no tensor.
    """

    weights_off_chip: int | None = None
    states_off_chip: int | None = None
    accumulators_off_chip: int | None = None
    stashes_off_chip: int | None = None
    shared_updates: int | None = None


@dataclass(frozen=True)
class OpOptions:
    """What a configuration says about ops of a family, in a stage, of a kind.

    Stages are told by phase and number. The later of these beats the earlier; what is
    noted on an op itself beats all of them.
    """

    by_family: Mapping[str, Notes] = field(default_factory=dict[str, Notes])
    by_stage: Mapping[tuple[Phase, int], Mapping[str, Notes]] = field(
        default_factory=dict[tuple[Phase, int], Mapping[str, Notes]]
    )
    by_kind: Mapping[str, Notes] = field(default_factory=dict[str, Notes])


@dataclass(frozen=True)
class ModelOptions:
    """Everything that decides how a captured graph is modelled.

    Without `ops` all ops are planned as `plan` says and as their notes do.
    `interleaved` is how stages of a pipeline take turns; `recompute` asks for forward
    work to be done again in backward stages, `redone` for that on one chip too, and
    says which; collectives are merged up to `merged_bytes`. With `outlined_layers`
    repeated layers become calls of one function: quicker to plan, each layer planned as
    its first one is. `synthetic` names inputs and outputs of the graph that do not
    travel between host and device.
    The products of a linear layer are planned together if `layers_as_one`.
    `memory_by_chip` bounds temporary memory of plans on chips, as shares of a tile's.
    Without `vertex_code` the code of vertices takes no memory. `not_modelled` says what
    a program asks for and the model leaves out, a sentence each: reports name it.
    """

    strategy: Strategy = Strategy.SINGLE
    accumulation: int = 1
    replicas: int = 1
    device_iterations: int = 1
    micro_batch: int = 1
    recompute: bool = True
    redone: Redone | None = None
    interleaved: bool = False
    merged_bytes: int = 0
    outlined_layers: bool = False
    layers_as_one: bool = True
    update: UpdateOptions | None = None
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    ops: OpOptions | None = None
    synthetic: tuple[str, ...] = ()
    memory_by_chip: Mapping[int, float] = field(default_factory=dict[int, float])
    vertex_code: bool = True
    not_modelled: tuple[str, ...] = ()
    plan: PlanOptions = field(default_factory=PlanOptions)

    def __post_init__(self) -> None:
        for name in ("accumulation", "replicas", "device_iterations", "micro_batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1.")
