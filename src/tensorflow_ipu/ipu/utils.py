"""General utilities, and the ways of older releases to configure the IPU system."""

from __future__ import annotations

from typing import Any

from tensorflow.compiler.plugin.poplar.driver.config_pb2 import (
    IpuOptions,
    SyntheticDataCategory,
)
from tensorflow.compiler.plugin.poplar.tools.tensorflow_weights_extractor import (
    export_variables_from_live_model,
    export_variables_from_live_session,
    import_data_in_live_model,
    import_data_in_live_session,
)
from tensorflow.python.client import session as session_lib
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.distribute import values
from tensorflow.python.eager import context
from tensorflow.python.framework import ops

from tensorflow_ipu._former_arguments import with_former

from . import _device, dataset_extractor
from ._config.old_calls import (
    auto_select_ipus,
    create_ipu_config,
    select_ipus,
    set_compilation_options,
    set_convolution_options,
    set_experimental_multi_replica_distribution_options,
    set_floating_point_behaviour_options,
    set_gcl_options,
    set_io_tile_options,
    set_ipu_connection_type,
    set_ipu_model_options,
    set_matmul_options,
    set_norm_options,
    set_optimization_options,
    set_pooling_options,
    set_recomputation_options,
    set_report_options,
    set_serialization_options,
    set_transfer_options,
)
from ._device import poplar_flags, seeds
from ._device.old_trace_events import (
    extract_all_events,
    extract_all_strings_from_event_trace,
    extract_all_types_from_event_trace,
    extract_compile_reports,
    extract_execute_reports,
    extract_poplar_serialized_graphs,
)
from .config import (
    DeviceConnectionType,
    ExecutionProfileType,
    IPUConfig,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    configure_ipu_system,
    get_ipu_config,
    running_on_ipu_model,
)

__all__ = [
    "DeviceConnectionType",
    "ExecutionProfileType",
    "IPUConfig",
    "IpuOptions",
    "MergeRemoteBuffersBehaviour",
    "SchedulingAlgorithm",
    "SelectionOrder",
    "SyntheticDataCategory",
    "auto_select_ipus",
    "configure_ipu_system",
    "create_ipu_config",
    "export_dataset_to_file",
    "export_inputs_to_file",
    "export_variables_from_live_model",
    "export_variables_from_live_session",
    "extract_all_events",
    "extract_all_strings_from_event_trace",
    "extract_all_types_from_event_trace",
    "extract_compile_reports",
    "extract_execute_reports",
    "extract_poplar_serialized_graphs",
    "get_ipu_config",
    "get_num_of_ipus_in_device",
    "import_data_in_live_model",
    "import_data_in_live_session",
    "move_variable_initialization_to_cpu",
    "reset_ipu_seed",
    "running_on_ipu_model",
    "select_ipus",
    "set_compilation_options",
    "set_convolution_options",
    "set_experimental_multi_replica_distribution_options",
    "set_floating_point_behaviour_options",
    "set_gcl_options",
    "set_io_tile_options",
    "set_ipu_connection_type",
    "set_ipu_model_options",
    "set_matmul_options",
    "set_norm_options",
    "set_optimization_options",
    "set_pooling_options",
    "set_recomputation_options",
    "set_report_options",
    "set_serialization_options",
    "set_transfer_options",
    "use_synthetic_data_for",
]

_CPU = "/device:CPU:0"


def get_num_of_ipus_in_device(ipu_device: str, device: str = "cpu") -> int:
    """Number of IPUs that a TensorFlow device such as "/device:IPU:0" has."""
    return _device.num_ipus_of_all_processes(_device.ordinal_of(ipu_device))


def reset_ipu_seed(
    seed: int,
    device: str = "/device:IPU:0",
    cpu_device: str = "cpu",
    experimental_identical_replicas: bool = False,
) -> None:
    """Start the random numbers of a device anew.

    They are then a function of the seed, in functions and in eager code that run
    afterwards; graphs that a session has already run keep their generators.
    """
    seeds.reset(seed, _device.ordinal_of(device), experimental_identical_replicas)


def move_variable_initialization_to_cpu(graph: Any = None) -> None:
    """Place the operators that compute the first values of variables on the CPU.

    That goes for all variables in the collection of the graph (by default the current
    one). What reads another variable stays where that variable is.
    """
    graph = graph or ops.get_default_graph()
    variables = graph.get_collection(ops.GraphKeys.GLOBAL_VARIABLES)
    # A distribution strategy places the initialisers of its variables itself.
    own = [v for v in variables if not isinstance(v, values.DistributedVariable)]
    for op in _find_producers([v.initializer.inputs[1].op for v in own]):
        _move_to_cpu(op)


def _find_producers(ops_to_follow: list[Any]) -> set[Any]:
    """The operators and what they need, up to operators that use a resource."""
    pending, found = list(ops_to_follow), set[Any]()
    while pending:
        op = pending.pop()
        if op not in found and not _uses_resource(op):
            found.add(op)
            pending.extend(tensor.op for tensor in op.inputs)
    return found


def _uses_resource(op: Any) -> bool:
    return any(tensor.dtype == "resource" for tensor in op.inputs)


def _move_to_cpu(op: Any) -> None:
    op._set_device(_CPU)
    # Marks of the device's program, of which the initialiser is no part any more.
    for name in ("_class", "_XlaCompile", "_XlaScope"):
        op._clear_attr(name)


@with_former(apply_options="apply_debug_options")
def export_dataset_to_file(
    dataset_or_infeed: Any,
    output_filename: str,
    num_elements: int,
    feed_name: str = "",
    apply_debug_options: bool = True,
) -> None:
    """Write the first `num_elements` elements of a data set, or infeed, to a file.

    `numpy.load` reads it: an array `<feed_name>.<component>/<element>` for each
    component of each element.
    """
    dataset = getattr(dataset_or_infeed, "_dataset", dataset_or_infeed)
    if not isinstance(dataset, dataset_ops.DatasetV2):
        raise TypeError(
            "`dataset_or_infeed` must be a tf.data.Dataset or an IPUInfeedQueue, but "
            f"is {dataset_or_infeed!r}."
        )
    if dataset is not dataset_or_infeed:
        feed_name = feed_name or str(getattr(dataset_or_infeed, "_id", ""))
    if apply_debug_options:
        dataset = dataset._apply_debug_options()
    with ops.device("cpu"):
        written = dataset_extractor.dataset_extractor(
            dataset, num_elements, output_filename, feed_name
        )
    _run(written)


def export_inputs_to_file(
    inputs: Any, output_filename: str, feed_dict: dict[Any, Any]
) -> None:
    """Write the values that `feed_dict` has for graph inputs to a file, by name."""
    with ops.device("cpu"):
        names = [tensor.name for tensor in inputs]
        written = dataset_extractor.export_variables(inputs, names, output_filename)
    _run(written, feed_dict)


def _run(operation: Any, feed_dict: dict[Any, Any] | None = None) -> None:
    if not context.executing_eagerly():
        with session_lib.Session() as session:
            session.run(operation, feed_dict)


def use_synthetic_data_for(synthetic_data_category: int) -> bool:
    """Whether TF_POPLAR_FLAGS says that data of that kind is made up."""
    return poplar_flags.uses_synthetic_data(
        poplar_flags.Category(synthetic_data_category)
    )
