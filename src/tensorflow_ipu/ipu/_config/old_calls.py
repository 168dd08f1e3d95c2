"""How releases before 2.1 configured the IPU system, which many programs still do.

`create_ipu_config` makes an `IpuOptions` message, `set_*_options` change it and
`configure_ipu_system` takes it. All of them warn and name what replaced them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.util import deprecation

from tensorflow_ipu._types import IpuOptions

from ..config import (
    DeviceConnectionType,
    ExecutionProfileType,
    IPUConfig,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from .protobuf import add_options, write_field

_F = TypeVar("_F", bound=Callable[..., Any])

_SCHEDULERS = {
    "": SchedulingAlgorithm.CHOOSE_BEST,
    "Clustering": SchedulingAlgorithm.CLUSTERING,
    "PostOrder": SchedulingAlgorithm.POST_ORDER,
    "LookAhead": SchedulingAlgorithm.LOOK_AHEAD,
    "ShortestPath": SchedulingAlgorithm.SHORTEST_PATH,
}

# Arguments that went before the functions did, and why nothing is lost.
_GONE = {
    "disable_graph_convolution_caching": "disable_graph_outlining replaced it",
    "number_of_replicas": "a program has as many replicas as fit the device",
    "retain_control_dependencies": "control dependencies are always kept",
    "sharded": "programs say themselves what they place where",
    "allow_stateful_recompute": "stateful operators are never recomputed",
}


def _replaced_by(attribute: str) -> Callable[[_F], _F]:
    """Decorator: warn that an attribute of `IPUConfig` does this now."""
    decorate: Any = deprecation.deprecated(
        None, f"Make an IPUConfig and set {attribute}, then configure_ipu_system()."
    )
    return decorate


def _set(opts: IpuOptions, **fields: Any) -> IpuOptions:
    """Set fields of the message; `a__b` stands for `a.b`."""
    for name, value in fields.items():
        write_field(opts, name.replace("__", "."), value)
    return opts


def _add(field: Any, options: Mapping[str, str] | None, argument: str) -> None:
    if options and not isinstance(options, dict):
        raise Exception(f"`{argument}` must be a dictionary")
    add_options(field, options or {})


def _refuse_unknown(arguments: Mapping[str, Any]) -> None:
    for name in arguments:
        if name not in _GONE:
            raise TypeError(f"There is no argument {name!r}.")
        logging.warn(f"The argument {name} has no effect: {_GONE[name]}.")


@_replaced_by("its attributes")
def create_ipu_config(
    profiling: bool = False,
    enable_ipu_events: bool = False,
    use_poplar_text_report: bool = False,
    use_poplar_cbor_report: bool = False,
    profile_execution: bool | ExecutionProfileType | None = None,
    enable_poplar_serialized_graph: bool = False,
    report_every_nth_execution: int = 0,
    max_report_size: int = 0x10000000,
    report_directory: str = "",
    scheduler_selection: SchedulingAlgorithm | str = SchedulingAlgorithm.CHOOSE_BEST,
    always_rearrange_copies_on_the_host: bool = False,
    merge_infeed_io_copies: bool = False,
    disable_graph_outlining: bool = False,
    retain_control_dependencies: bool = False,
    max_cross_replica_sum_buffer_size: int = 0,
    max_inter_ipu_copies_buffer_size: int = 0,
    max_scheduler_lookahead_depth: int = 5,
    max_scheduler_search_space_size: int = 64,
    prefetch_data_streams: bool = True,
    selection_order: SelectionOrder = SelectionOrder.AUTO,
    enable_experimental_remote_buffer_embedding: bool = False,
    **gone: Any,
) -> IpuOptions:
    """An `IpuOptions` message with these options."""
    _refuse_unknown(gone)
    if profiling and enable_ipu_events:
        raise Exception("`profiling` and `enable_ipu_events` are mutually exclusive")
    traced = profiling or enable_ipu_events
    return _set(
        IPUConfig()._create_protobuf(),
        profiling__enable_ipu_trace_events=traced,
        profiling__enable_compilation_trace=traced,
        profiling__enable_io_trace=traced,
        profiling__execution_trace_type=_profile(profile_execution, profiling),
        profiling__enable_poplar_reports_text=use_poplar_text_report,
        profiling__enable_poplar_reports_cbor=use_poplar_cbor_report,
        profiling__enable_poplar_graph=enable_poplar_serialized_graph,
        profiling__report_every_nth_execution=report_every_nth_execution,
        profiling__max_report_size=max_report_size,
        profiling__report_directory=report_directory,
        speed_size_config__scheduler_selection=_scheduler(scheduler_selection),
        speed_size_config__always_rearrange_copies_on_the_host=(
            always_rearrange_copies_on_the_host
        ),
        speed_size_config__merge_infeed_io_copies=merge_infeed_io_copies,
        speed_size_config__disable_graph_outlining=disable_graph_outlining,
        max_cross_replica_sum_buffer_size=max_cross_replica_sum_buffer_size,
        max_inter_ipu_copies_buffer_size=max_inter_ipu_copies_buffer_size,
        max_scheduler_lookahead_depth=max_scheduler_lookahead_depth,
        max_scheduler_search_space_size=max_scheduler_search_space_size,
        prefetch_data_streams=prefetch_data_streams,
        selection_order=selection_order,
        enable_experimental_remote_buffer_embedding=(
            enable_experimental_remote_buffer_embedding
        ),
    )


def _profile(chosen: Any, profiling: bool) -> ExecutionProfileType:
    if not chosen:
        return ExecutionProfileType.NO_PROFILE
    chosen = ExecutionProfileType.DEVICE_PROFILE if chosen is True else chosen
    if not isinstance(chosen, ExecutionProfileType):
        raise Exception(
            "`profile_execution` must be True, False, or an ExecutionProfileType"
        )
    if chosen != ExecutionProfileType.NO_PROFILE and not profiling:
        raise Exception("`profiling` is required when `profile_execution` is set")
    return chosen


def _scheduler(chosen: SchedulingAlgorithm | str) -> SchedulingAlgorithm:
    if isinstance(chosen, SchedulingAlgorithm):
        return chosen
    if chosen not in _SCHEDULERS:
        raise TypeError(f"{chosen!r} is not a SchedulingAlgorithm.")
    return _SCHEDULERS[chosen]


@_replaced_by("auto_select_ipus")
def auto_select_ipus(
    opts: IpuOptions, num_ipus: int | Sequence[int], **gone: Any
) -> IpuOptions:
    """One device with `num_ipus` IPUs, or one for each number in a list."""
    _refuse_unknown(gone)
    _check_unselected(opts)
    if not isinstance(num_ipus, int | list | tuple):
        raise Exception("`num_ipus` must be an integer, list or tuple.")
    for count in [num_ipus] if isinstance(num_ipus, int) else num_ipus:
        opts.device_config.add(auto_count=count)
    return opts


@_replaced_by("select_ipus")
def select_ipus(opts: IpuOptions, indices: Sequence[int], **gone: Any) -> IpuOptions:
    """One device for each id in a list."""
    _refuse_unknown(gone)
    _check_unselected(opts)
    if not isinstance(indices, list | tuple):
        raise Exception("`indices` must be a list or tuple.")
    if len(set(indices)) != len(indices):
        raise Exception("All device indices in `indices` must be unique.")
    for id in indices:
        opts.device_config.add(cfg_index=id)
    return opts


def _check_unselected(opts: IpuOptions) -> None:
    # The two ways to choose devices exclude each other, and neither can be undone.
    if opts.device_config:
        raise Exception("IPU devices have already been configured.")


@_replaced_by("device_connection")
def set_ipu_connection_type(
    opts: IpuOptions,
    connection_type: DeviceConnectionType = DeviceConnectionType.ALWAYS,
    ipu_version: str | int = "",
    enable_remote_buffers: bool = False,
) -> IpuOptions:
    """When to attach, and to what kind of IPU."""
    offline = (DeviceConnectionType.NEVER, DeviceConnectionType.PRE_COMPILE)
    if ipu_version == "" and connection_type in offline:
        raise Exception(f"`ipu_version` must be specified with {connection_type}.")
    version = f"ipu{ipu_version}" if isinstance(ipu_version, int) else ipu_version
    return _set(
        opts,
        device_connection_type=connection_type,
        ipu_version=version,
        enable_remote_buffers_without_device=enable_remote_buffers,
    )


@_replaced_by("ipu_model")
def set_ipu_model_options(
    opts: IpuOptions,
    compile_ipu_code: bool = True,
    tiles_per_ipu: int | None = None,
    ipu_model_version: str = "ipu2",
) -> IpuOptions:
    """The simulated IPU."""
    return _set(
        opts,
        ipu_model_config__compile_ipu_code=compile_ipu_code,
        ipu_model_config__tiles_per_ipu=tiles_per_ipu or 0,
        ipu_model_config__ipu_model_version=ipu_model_version,
    )


@_replaced_by("optimizations")
def set_optimization_options(
    opts: IpuOptions,
    combine_embedding_lookups: bool = False,
    combine_matmuls: bool = False,
    max_cross_replica_sum_buffer_size: int = 0,
    max_reduce_scatter_buffer_size: int = 0,
    max_inter_ipu_copies_buffer_size: int = 0,
    max_send_recv_cluster_size: int = 0,
    minimum_remote_tensor_size: int = 128,
    merge_remote_buffers: (
        MergeRemoteBuffersBehaviour | bool | None
    ) = MergeRemoteBuffersBehaviour.NO_MERGING,
    gather_simplifier: bool = True,
    triangular_solve_expander_block_size: int = 0,
    cholesky_block_size: int = 0,
    enable_fast_math: bool = False,
) -> IpuOptions:
    """Trades of memory against speed."""
    return _set(
        opts,
        enable_multi_slice_combiner=combine_embedding_lookups,
        enable_matmul_combiner=combine_matmuls,
        max_cross_replica_sum_buffer_size=max_cross_replica_sum_buffer_size,
        max_reduce_scatter_buffer_size=max_reduce_scatter_buffer_size,
        max_inter_ipu_copies_buffer_size=max_inter_ipu_copies_buffer_size,
        max_send_recv_cluster_size=max_send_recv_cluster_size,
        minimum_remote_tensor_size=minimum_remote_tensor_size,
        remote_buffer_merging_mode=_merging(merge_remote_buffers),
        disable_gather_simplifier=not gather_simplifier,
        triangular_solve_expander_block_size=triangular_solve_expander_block_size,
        cholesky_block_size=cholesky_block_size,
        enable_fast_math=enable_fast_math,
    )


def _merging(
    chosen: MergeRemoteBuffersBehaviour | bool | None,
) -> MergeRemoteBuffersBehaviour:
    behaviour = MergeRemoteBuffersBehaviour
    if isinstance(chosen, behaviour):
        return chosen
    if chosen is None:
        return behaviour.IF_BENEFICIAL
    return behaviour.MERGE if chosen else behaviour.NO_MERGING


@_replaced_by("norms")
def set_norm_options(
    opts: IpuOptions,
    use_stable_statistics: bool = False,
    experimental_distributed_batch_norm_replica_group_size: int = 1,
) -> IpuOptions:
    """Batch, layer, group and instance norms."""
    size = experimental_distributed_batch_norm_replica_group_size
    if size < 1:
        raise ValueError(
            "experimental_distributed_batch_norm_replica_group_size needs to be at "
            f"least 1, but is {size}."
        )
    return _set(
        opts,
        use_stable_norm_statistics=use_stable_statistics,
        experimental_distributed_batch_norm_replica_group_size=size,
    )


@_replaced_by("floating_point_behaviour")
def set_floating_point_behaviour_options(
    opts: IpuOptions,
    inv: bool = True,
    div0: bool = True,
    oflo: bool = True,
    esr: bool = True,
    nanoo: bool = True,
) -> IpuOptions:
    """What happens when arithmetic goes wrong, and how results are rounded."""
    return _set(
        opts,
        floating_point_behaviour__inv=inv,
        floating_point_behaviour__div0=div0,
        floating_point_behaviour__oflo=oflo,
        floating_point_behaviour__esr=StochasticRoundingBehaviour.from_bool(esr),
        floating_point_behaviour__nanoo=nanoo,
    )


@_replaced_by("io_tiles")
def set_io_tile_options(
    opts: IpuOptions,
    num_io_tiles: int,
    place_ops_on_io_tiles: bool | None = None,
    io_tile_available_memory_proportion: float = 0.9,
) -> IpuOptions:
    """Tiles that do nothing but input and output."""
    if place_ops_on_io_tiles and num_io_tiles == 0:
        raise ValueError("Cannot place ops on I/O tiles when num_io_tiles == 0")
    if place_ops_on_io_tiles is not None:
        opts.place_ops_on_io_tiles = place_ops_on_io_tiles
    return _set(
        opts,
        num_io_tiles=num_io_tiles,
        io_tile_available_memory_proportion=io_tile_available_memory_proportion,
    )


@_replaced_by("allow_recompute")
def set_recomputation_options(
    opts: IpuOptions, allow_recompute: bool = True, **gone: Any
) -> IpuOptions:
    """Whether values are computed again to save memory."""
    _refuse_unknown(gone)
    return _set(opts, speed_size_config__allow_recompute=allow_recompute)


@_replaced_by("serialization_output_folder")
def set_serialization_options(opts: IpuOptions, output_folder: str = "") -> IpuOptions:
    """Where compiled programs are written; nowhere if it is empty."""
    return _set(opts, serialization_folder=output_folder)


@_replaced_by("compilation_poplar_options")
def set_compilation_options(
    opts: IpuOptions, compilation_options: Mapping[str, str] | None = None
) -> IpuOptions:
    """Options of Poplar's engine."""
    _add(opts.compilation_options, compilation_options, "compilation_options")
    return opts


@_replaced_by("convolutions.poplar_options")
def set_convolution_options(
    opts: IpuOptions, convolution_options: Mapping[str, str] | None = None
) -> IpuOptions:
    """Options of Poplar for convolutions."""
    _add(opts.convolution_options, convolution_options, "convolution_options")
    return opts


@_replaced_by("matmuls.poplar_options")
def set_matmul_options(
    opts: IpuOptions,
    matmul_options: Mapping[str, str] | None = None,
    clear_pass_type: bool = False,
) -> IpuOptions:
    """Options of Poplar for matrix multiplications."""
    _add(opts.matmul_options, matmul_options, "matmul_options")
    return _set(opts, clear_matmul_pass_type=clear_pass_type)


@_replaced_by("pooling.poplar_options")
def set_pooling_options(
    opts: IpuOptions, pooling_options: Mapping[str, str] | None = None
) -> IpuOptions:
    """Options of Poplar for pooling."""
    _add(opts.pooling_options, pooling_options, "pooling_options")
    return opts


@_replaced_by("gcl_poplar_options")
def set_gcl_options(
    opts: IpuOptions,
    gcl_options: Mapping[str, str] | int | None = None,
    num_io_tiles: int | Mapping[str, str] = 0,
) -> IpuOptions:
    """Options of the library that replicas exchange data with.

    Before 1.4 the number of I/O tiles was told here, and came first.
    """
    if isinstance(gcl_options, int):
        gcl_options, num_io_tiles = num_io_tiles or {}, gcl_options
    if num_io_tiles:
        opts.num_io_tiles = num_io_tiles
        gcl_options = {} if gcl_options is None else gcl_options
    if not isinstance(gcl_options, dict):
        raise TypeError("`gcl_options` must be a dictionary")
    add_options(opts.gcl_options, gcl_options)
    return opts


@_replaced_by("compilation_poplar_options (autoReport.*)")
def set_report_options(
    opts: IpuOptions,
    graph_options: Mapping[str, str] | None = None,
    execution_options: Mapping[str, str] | None = None,
    report_options: Mapping[str, str] | None = None,
) -> IpuOptions:
    """Options of reports. Those of executions have no field any more.

    `report_options` is what both were called before 1.2.
    """
    graph_options = report_options if graph_options is None else graph_options
    _add(opts.profiling.graph_options, graph_options, "graph_options")
    if execution_options:
        logging.warn(
            "`execution_options` has no effect: the engine options autoReport.* say "
            "what a report contains."
        )
    return opts


@_replaced_by("nothing: transfers need no verification here")
def set_transfer_options(
    opts: IpuOptions, use_verified_transfers: bool = False
) -> IpuOptions:
    """Verified transfers, which the IPU system no longer has."""
    return opts


@_replaced_by("experimental.multi_replica_distribution")
def set_experimental_multi_replica_distribution_options(
    opts: IpuOptions, process_count: int, process_index: int
) -> IpuOptions:
    """Replicas of one program in several processes."""
    if not 0 <= process_index < process_count:
        raise ValueError(
            f"process_index is {process_index}, but 0 <= process_index < process_count "
            f"({process_count}) must hold."
        )
    return _set(
        opts,
        multi_replica_process_count=process_count,
        multi_replica_process_index=process_index,
    )
