"""Every option is translated, or listed as having no effect with the reason."""

from __future__ import annotations

import pytest
import torch

import popple
import poptorch
from popple.graph import DType, Strategy
from popple.plan import Overlap
from poptorch import _translate as translate
from poptorch._options.tables import TRANSLATED, WITHOUT_EFFECT
from poptorch.options import option_names
from tests.poptorch.models import Scale, options

TABLES = (TRANSLATED, WITHOUT_EFFECT)


def test_every_option_is_in_exactly_one_table() -> None:
    listed = [name for table in TABLES for name in table]
    assert sorted(listed) == sorted(option_names())


@pytest.mark.parametrize("table", TABLES, ids=["translated", "without effect"])
def test_every_entry_says_something(table: dict[str, str]) -> None:
    assert all(len(text) > 10 for text in table.values())


def model_options(
    opts: poptorch.Options, optimizer: torch.optim.Optimizer | None = None
) -> translate.ModelOptions:
    return translate.model_options(opts, 4, optimizer, {"w": "g"})


def test_counts_become_those_of_the_core() -> None:
    made = model_options(options(d=2, g=3, r=4), torch.optim.SGD([torch.ones(1)], lr=1))
    assert (made.device_iterations, made.accumulation, made.replicas) == (2, 3, 4)
    assert made.micro_batch == 4
    assert model_options(options(d=2, r=4)).accumulation == 1


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (poptorch.PipelinedExecution(), Strategy.PIPELINED),
        (poptorch.ShardedExecution(), Strategy.SHARDED),
        (poptorch.SerialPhasedExecution("A"), Strategy.PHASED),
        (poptorch.ParallelPhasedExecution("A"), Strategy.PHASED),
    ],
)
def test_strategies(strategy: object, expected: Strategy) -> None:
    opts = options().setExecutionStrategy(strategy)  # type: ignore[arg-type]
    assert model_options(opts).strategy is expected


@pytest.mark.parametrize(
    ("make", "kind", "num_states"),
    [
        (lambda ws: torch.optim.SGD(ws, lr=1), "sgd_update", 0),
        (lambda ws: torch.optim.SGD(ws, lr=1, momentum=0.9), "momentum_update", 1),
        (lambda ws: torch.optim.Adam(ws), "adam_update", 2),
        (lambda ws: torch.optim.AdamW(ws), "adam_update", 2),
        (lambda ws: poptorch.optim.LAMB(ws), "lamb_update", 2),
        (lambda ws: torch.optim.RMSprop(ws), "rmsprop_update", 1),
        (lambda ws: torch.optim.RMSprop(ws, momentum=0.9), "rmsprop_update", 2),
        (
            lambda ws: torch.optim.RMSprop(ws, momentum=0.9, centered=True),
            "rmsprop_update",
            3,
        ),
    ],
)
def test_optimizers_become_update_ops(make: object, kind: str, num_states: int) -> None:
    optimizer = make(Scale().parameters())  # type: ignore[operator]
    update = model_options(options(), optimizer).update
    assert update is not None
    assert (update.kind, update.num_states) == (kind, num_states)


def test_types_of_state_and_accumulators() -> None:
    adam = poptorch.optim.Adam(
        Scale().parameters(),
        accum_type=torch.float16,
        second_order_momentum_accum_type=torch.float16,
    )
    update = model_options(options(), adam).update
    assert update is not None
    assert update.accumulator_dtype is DType.F16
    assert update.state_dtypes == (DType.F32, DType.F16)


def test_a_velocity_that_is_the_accumulator_is_one_tensor() -> None:
    sgd = poptorch.optim.SGD(
        Scale().parameters(), lr=1, momentum=0.9, use_combined_accum=True
    )
    opts = options()
    update = model_options(opts, sgd).update
    assert update is not None
    assert (update.num_states, update.state_dtypes) == (1, (None,))
    opts.Training.gradientAccumulation(4)
    update = model_options(opts, sgd).update
    assert update is not None
    assert (update.num_states, update.accumulator_dtype) == (0, None)


def test_settings_of_groups() -> None:
    first, second = torch.ones(1), torch.ones(2)
    groups = [{"params": [first]}, {"params": [second], "lr": 0.5}]
    rule = translate.update_rule(
        torch.optim.SGD(groups, lr=0.1), {id(first): "a", id(second): "b"}
    )
    assert [(g.names, g.settings["lr"]) for g in rule.groups] == [
        (("a",), 0.1),
        (("b",), 0.5),
    ]


def test_plan_options() -> None:
    opts = options().setAvailableMemoryProportion({"IPU0": 0.3, "IPU1": 0.2})
    opts.Precision.setPartialsType(torch.half)
    model = model_options(opts)
    assert model.memory_by_chip == {0: 0.3, 1: 0.2}
    assert model.plan.partials == "f16"


def test_outputs_of_several_processes_stay_with_them() -> None:
    opts = options()
    opts.Distributed.configureProcessId(1, 2)
    # Inference has nothing to add up, so the other process need not be there.
    model = poptorch.inferenceModel(torch.nn.Identity(), opts)
    assert model(torch.ones(1, 3)).shape == (1, 3)


def test_cost_counts_the_replicas_of_all_processes() -> None:
    opts = options().useOfflineIpuTarget()
    opts.replicationFactor(16)
    opts.Distributed.configureProcessId(0, 3)
    model = poptorch.inferenceModel(Scale(), opts)
    model.compile(torch.ones(16, 1))
    # More than one Pod16 has: processes may have one each.
    assert popple.modelled(model).graph.execution.replicas == 48


def test_locations_of_tensors() -> None:
    opts = options()
    location = poptorch.TensorLocationSettings().useOnChipStorage(False)
    opts.TensorLocations.setWeightLocation(location.minElementsForOffChip(64))
    state = poptorch.TensorLocationSettings().useReplicatedTensorSharding(True)
    opts.TensorLocations.setOptimizerLocation(state)
    memory = model_options(opts).memory
    assert memory.weights_off_chip == 64
    assert memory.states_off_chip is memory.accumulators_off_chip is None
    assert memory.shared_updates == 8192


def test_io_tiles_and_overlap() -> None:
    opts = options()
    opts.TensorLocations.numIOTiles(64)
    mode = poptorch.OverlapMode.OverlapDeviceIterationLoop
    made = translate.model_options(opts, 4, None, {}, mode).plan.io
    assert (made.num_tiles, made.overlap) == (64, Overlap.ITERATIONS)
