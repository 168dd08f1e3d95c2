"""Every translated option of a configuration, and every flag, does what it says.

Each is tried twice, left alone and set: a value or a modelled number must differ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import _device  # noqa: E402
from tensorflow.python.ipu._device import (  # noqa: E402
    poplar_flags,
    trace_events,
    virtual_pod,
)
from tensorflow.python.ipu._device.devices import Devices  # noqa: E402
from tensorflow.python.ipu._programs import compilation  # noqa: E402

from popple.engine.tensorflow import Processes, processes, replicas  # noqa: E402
from tensorflow_ipu import _translate  # noqa: E402
from tests.tensorflow_ipu.translate.programs import (  # noqa: E402
    Change,
    Outcome,
    configure,
    infeed,
    on_device,
    piped,
    setting,
    stages,
)

pytestmark = pytest.mark.usefixtures("own_pod")

Connection = ipu.config.DeviceConnectionType
Schedule = ipu.pipelining_ops.PipelineSchedule
PROPORTION = "availableMemoryProportion"
HALF, SINGLE = np.float16, np.float32
# Two stages on one IPU: with two IPUs there are two replicas.
ON_ONE = {"device_mapping": [0, 0], "pipeline_schedule": Schedule.Sequential}


@dataclass(frozen=True)
class Case:
    """What a test has at hand."""

    path: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    caplog: pytest.LogCaptureFixture

    def flags(self, text: str) -> None:
        self.monkeypatch.setenv("TF_POPLAR_FLAGS", text)


Effect = Callable[[Case], tuple[object, object]]
"""What is found with an option left alone, and with it set."""


def operators(
    x: Any, kernel: Any, matrix: Any, table: Any, rows: Any, square: Any
) -> Any:
    """A convolution, products, a lookup, a decomposition and a system solved."""
    triangle = tf.linalg.cholesky(square)
    product = matrix @ (matrix @ (matrix @ matrix))
    return (
        tf.nn.conv2d(x, kernel, 1, "SAME"),
        product,
        tf.gather(table, rows),
        tf.linalg.triangular_solve(triangle, square),
    )


def run_operators(change: Change | None) -> Outcome:
    inputs = [
        np.ones([2, 8, 8, 8], HALF),
        np.ones([3, 3, 8, 16], HALF),
        np.ones([64, 64], HALF),
        np.ones([50000, 8], HALF),
        np.arange(64, dtype=np.int32),
        64 * np.eye(48, dtype=np.float32),
    ]
    return on_device(operators, inputs, change)


def normed(change: Change | None) -> Outcome:
    """A batch norm in training."""

    def batch_norm(x: Any, scale: Any) -> Any:
        return tf.compat.v1.nn.fused_batch_norm(x, scale, scale)[0]

    inputs = [np.ones([4, 8, 8, 16], np.float32), np.ones(16, np.float32)]
    return on_device(batch_norm, inputs, change)


def of_operators(option: str, value: Any) -> Effect:
    return lambda _: (run_operators(None), run_operators(setting(option, value)))


def of_pipeline(change: Change, num_ipus: int = 2, **arguments: Any) -> Effect:
    run = functools.partial(piped, num_ipus=num_ipus, **arguments)
    return lambda _: (run(None), run(change))


def of_arithmetic(name: str, function: Any, *inputs: Any, value: Any = True) -> Effect:
    change = setting(f"floating_point_behaviour.{name}", value)
    return lambda _: (on_device(function, inputs), on_device(function, inputs, change))


def of_device(change: Change, look: Callable[[], Any]) -> Effect:
    """What a look at the device shows."""

    def found(change: Change | None) -> Any:
        configure(change)
        seen = look()
        ipu.config.reset_ipu_configuration()
        return seen

    return lambda _: (found(None), found(change))


def num_held() -> int:
    pod = virtual_pod.find_pod()
    return len(pod.holders()) if pod else 0


def held_by_program() -> int:
    """IPUs that a program holds once it is configured."""
    configure(None)
    return num_held()


def on_the_model(effect: Effect) -> Effect:
    def tried(case: Case) -> tuple[object, object]:
        case.flags("--use_ipu_model")
        return effect(case)

    return tried


def of_flag(text: str, look: Callable[[], Any], before: str = "") -> Effect:
    def tried(case: Case) -> tuple[object, object]:
        case.flags(before)
        without = look()
        ipu.config.reset_ipu_configuration()
        case.flags(f"{before} {text}")
        return without, look()

    return tried


def look_at_norm() -> Any:
    def norm() -> Any:
        index = tf.cast(ipu.replication_ops.replication_index(), tf.float32)
        x = tf.reshape(index + tf.constant([1.0, 2.0]), [2, 1, 1, 1])
        return tf.compat.v1.nn.fused_batch_norm(x, [1.0], [0.0])[1]

    return norm


GROUP_SIZE = "norms.experimental.distributed_batch_norm_replica_group_size"


def of_group_size(_: Case) -> tuple[object, object]:
    change = setting(GROUP_SIZE, 2)
    return tuple(on_device(look_at_norm(), (), each, 2) for each in (None, change))


def of_reports(case: Case) -> tuple[object, object]:
    def count(options: dict[str, str]) -> int:
        directory = {"autoReport.directory": str(case.path)}
        change = setting("compilation_poplar_options", {**directory, **options})
        before = len(list(case.path.glob("*/profile.pop")))
        on_device(lambda x: x + 1.0, [np.ones(4, HALF)], change)
        return len(list(case.path.glob("*/profile.pop"))) - before

    return count({}), count({"autoReport.outputGraphProfile": "true"})


def of_creator(_: Case) -> tuple[object, object]:
    def tried(creator: str) -> str:
        options = ipu.config.IPUConfig()._create_protobuf()
        creators = ipu.config.config_pb2.IpuOptionsCreator
        options.creator_id = creators.Value(creator)
        try:
            ipu.config.configure_ipu_system(options)
        except tf.errors.InvalidArgumentError:
            return "refused"
        return "taken"

    return tried("IPU_UTILS"), tried("INVALID")


def of_events(_: Case) -> tuple[object, object]:
    def count(wanted: bool) -> int:
        options = ipu.config.IPUConfig()._create_protobuf()
        options.profiling.enable_ipu_trace_events = wanted
        ipu.config.configure_ipu_system(options)
        strategy = ipu.ipu_strategy.IPUStrategy()
        strategy.run(tf.function(lambda: tf.constant(1.0) + 1.0))
        return len(trace_events.drain())

    return count(False), count(True)


def waits() -> list[float]:
    """How long an attachment on demand waits between tries, while all IPUs are held."""
    now = [0.0]
    found: list[float] = []

    def wait(seconds: float) -> None:
        found.append(seconds)
        now[0] += seconds

    pod = virtual_pod.find_pod()
    assert pod is not None
    devices = Devices(wait, lambda: now[0])
    config = ipu.config.IPUConfig()
    config.device_connection.type = Connection.ON_DEMAND
    devices.configure(config._create_protobuf())
    with pod.acquire(num_chips=16), pytest.raises(tf.errors.InternalError):
        devices.attach(0)
    return found


def first_batch() -> list[float]:
    element = next(iter(infeed()._dataset.skip(1)))
    return sorted(set(np.ravel(element).tolist()))[:3]


def enqueued() -> int:
    """Elements that reach the host."""
    configure(None)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    @tf.function
    def program() -> None:
        outfeed.enqueue(tf.constant(1.0))

    ipu.ipu_strategy.IPUStrategy().run(program)
    return len(outfeed.dequeue())


def of_help(case: Case) -> tuple[object, object]:
    def printed(flags: str) -> bool:
        case.flags(flags)
        poplar_flags._parse.cache_clear()
        poplar_flags.read()
        return "Flags of" in case.capsys.readouterr().err

    return printed(""), printed("--help")


def of_logged_cycles(case: Case) -> tuple[object, object]:
    def count(flags: str) -> int:
        case.flags(flags)
        case.caplog.clear()
        on_device(lambda x: x + 1.0, [np.ones(4, HALF)])
        texts = [record.getMessage() for record in case.caplog.records]
        return sum("cycles, as modelled" in text for text in texts)

    return count(""), count("--log_cycle_count=0")


def of_cache(case: Case) -> tuple[object, object]:
    def count(flags: str) -> int:
        case.flags(flags)
        on_device(lambda x: x + 1.0, [np.ones(4, HALF)])
        return len(list(case.path.glob("*.poplar_exec")))

    return count(""), count(f"--executable_cache_path={case.path}")


def of_index(case: Case) -> tuple[object, object]:
    # As if poprun had started two processes: only then there are others.
    case.monkeypatch.setattr(processes._CLUSTER, "processes", Processes(0, 2))

    def first_replica(index: int) -> int:
        config = ipu.config.IPUConfig()
        config.experimental.multi_replica_distribution.process_count = 2
        config.experimental.multi_replica_distribution.process_index = index
        config.configure_ipu_system()
        with compilation.assuming(4, 0):
            first = replicas.replica_offset()
        ipu.config.reset_ipu_configuration()
        return first

    return first_replica(0), first_replica(1)


EFFECTS: dict[str, Effect] = {
    "IPUConfig.allow_recompute": of_pipeline(setting("allow_recompute", True)),
    "IPUConfig.selection_order": of_pipeline(
        setting("selection_order", ipu.config.SelectionOrder.SNAKE),
        num_ipus=4,
        computational_stages=stages(4),
    ),
    "IPUConfig.compilation_poplar_options": of_reports,
    "IPUConfig.auto_select_ipus": of_device(
        setting("auto_select_ipus", [4]), _device.num_ipus
    ),
    "IPUConfig.select_ipus": of_device(
        setting("select_ipus", 24, auto_select_ipus=[]), _device.num_ipus
    ),
    "IPUConfig.convolutions.poplar_options": of_operators(
        "convolutions.poplar_options", {PROPORTION: "0.0001"}
    ),
    "IPUConfig.slices.poplar_options": of_operators(
        "slices.poplar_options", {PROPORTION: "0.01"}
    ),
    "IPUConfig.matmuls.poplar_options": of_operators(
        "matmuls.poplar_options", {PROPORTION: "0.0001"}
    ),
    "IPUConfig.matmuls.clear_pass_type": of_pipeline(
        setting("matmuls.clear_pass_type", True)
    ),
    "IPUConfig.norms.use_stable_statistics": lambda _: (
        normed(None),
        normed(setting("norms.use_stable_statistics", True)),
    ),
    "poplar_options.availableMemoryProportion": of_operators(
        "convolutions.poplar_options", {PROPORTION: "0.0002"}
    ),
    "poplar_options.partialsType": of_operators(
        "matmuls.poplar_options", {"partialsType": "half"}
    ),
    f"IPUConfig.{GROUP_SIZE}": of_group_size,
    "IPUConfig.optimizations.enable_graph_outlining": of_operators(
        "optimizations.enable_graph_outlining", False
    ),
    "IPUConfig.optimizations.maximum_cross_replica_sum_buffer_size": of_pipeline(
        setting("optimizations.maximum_cross_replica_sum_buffer_size", 1 << 20),
        **ON_ONE,
    ),
    "IPUConfig.optimizations.maximum_reduce_scatter_buffer_size": of_pipeline(
        setting("optimizations.maximum_reduce_scatter_buffer_size", 1 << 20),
        replicated_optimizer_state_sharding=True,
        **ON_ONE,
    ),
    "IPUConfig.optimizations.minimum_remote_tensor_size": of_pipeline(
        setting("optimizations.minimum_remote_tensor_size", 1 << 20),
        offload_weight_update_variables=True,
    ),
    "IPUConfig.optimizations.triangular_solve_expander_block_size": of_operators(
        "optimizations.triangular_solve_expander_block_size", 16
    ),
    "IPUConfig.optimizations.cholesky_block_size": of_operators(
        "optimizations.cholesky_block_size", 16
    ),
    "IPUConfig.device_connection.type": of_device(
        setting("device_connection.type", Connection.ON_DEMAND), num_held
    ),
    "IPUConfig.device_connection.version": of_device(
        setting(
            "device_connection.version",
            "ipu21",
            device_connection__type=Connection.NEVER,
        ),
        _device.system,
    ),
    "IPUConfig.experimental.multi_replica_distribution.process_count": of_device(
        setting("experimental.multi_replica_distribution.process_count", 2),
        _device.num_ipus_of_all_processes,
    ),
    "IPUConfig.experimental.multi_replica_distribution.process_index": of_index,
    "IPUConfig.floating_point_behaviour.inv": of_arithmetic(
        "inv", lambda x: x / x, SINGLE([0])
    ),
    "IPUConfig.floating_point_behaviour.div0": of_arithmetic(
        "div0", lambda x: 1.0 / x, SINGLE([0])
    ),
    "IPUConfig.floating_point_behaviour.oflo": of_arithmetic(
        "oflo", lambda x: x * x, HALF([300])
    ),
    "IPUConfig.floating_point_behaviour.esr": of_arithmetic(
        "esr",
        lambda x: x + HALF(1e-4),
        np.ones(4096, HALF),
        value=ipu.config.StochasticRoundingBehaviour.ON,
    ),
    "IPUConfig.floating_point_behaviour.nanoo": of_arithmetic(
        "nanoo", lambda x: x * x, HALF([300])
    ),
    "IPUConfig.floating_point_behaviour.set_all": of_arithmetic(
        "set_all", lambda x: 1.0 / x, SINGLE([0])
    ),
    "IPUConfig.io_tiles.num_io_tiles": of_operators("io_tiles.num_io_tiles", 1400),
    "IPUConfig.io_tiles.place_ops_on_io_tiles": of_pipeline(
        setting("io_tiles.place_ops_on_io_tiles", True, io_tiles__num_io_tiles=64)
    ),
    "IPUConfig.ipu_model.compile_ipu_code": on_the_model(
        of_operators("ipu_model.compile_ipu_code", True)
    ),
    "IPUConfig.ipu_model.tiles_per_ipu": on_the_model(
        of_operators("ipu_model.tiles_per_ipu", 16)
    ),
    "IPUConfig.ipu_model.version": on_the_model(
        of_operators("ipu_model.version", "ipu1")
    ),
    "IpuOptions.creator_id": of_creator,
    "IpuOptions.profiling.enable_ipu_trace_events": of_events,
    "TF_POPLAR_FLAGS.help": of_help,
    "TF_POPLAR_FLAGS.use_ipu_model": of_flag("--use_ipu_model", held_by_program),
    "TF_POPLAR_FLAGS.ipu_model_tiles": of_flag(
        "--ipu_model_tiles=8", _device.system, before="--use_ipu_model"
    ),
    "TF_POPLAR_FLAGS.use_on_demand": of_flag("--use_on_demand", held_by_program),
    "TF_POPLAR_FLAGS.on_demand_device_poll_time": of_flag(
        "--on_demand_device_poll_time=700", waits, "--on_demand_device_timeout=2000"
    ),
    "TF_POPLAR_FLAGS.on_demand_device_timeout": of_flag(
        "--on_demand_device_timeout=5000", waits, "--on_demand_device_timeout=2000"
    ),
    "TF_POPLAR_FLAGS.use_synthetic_data": of_flag("--use_synthetic_data", enqueued),
    "TF_POPLAR_FLAGS.synthetic_data_categories": of_flag(
        "--synthetic_data_categories=infeed", first_batch
    ),
    "TF_POPLAR_FLAGS.synthetic_data_initializer": of_flag(
        "--synthetic_data_initializer=7", first_batch, "--use_synthetic_data"
    ),
    "TF_POPLAR_FLAGS.null_data_feed": of_flag("--null_data_feed", first_batch),
    "TF_POPLAR_FLAGS.executable_cache_path": of_cache,
    "TF_POPLAR_FLAGS.log_cycle_count": of_logged_cycles,
}

SOURCES = ("IPUConfig.", "IpuOptions.", "TF_POPLAR_FLAGS.", "poplar_options.")


def test_every_translated_option_is_tried() -> None:
    listed = {n for n in _translate.TRANSLATED if n.startswith(SOURCES)}
    assert set(EFFECTS) == listed


def test_nothing_differs_where_nothing_is_set() -> None:
    assert run_operators(None) == run_operators(None)


@pytest.mark.parametrize("name", EFFECTS)
def test_an_option_has_an_effect(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    without, with_option = EFFECTS[name](Case(tmp_path, monkeypatch, capsys, caplog))
    assert without != with_option
