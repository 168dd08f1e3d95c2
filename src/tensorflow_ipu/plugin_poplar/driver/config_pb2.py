"""`IpuOptions`: a configuration as the back end gets it, and the enums in it.

Field numbers are those of the original message, so serialised options are exchanged
with it unharmed.
"""

from __future__ import annotations

from typing import Any

from . import _schema, option_flag_pb2, threestate_pb2

IpuOptions: Any
IpuSelectionOrder: Any
IpuDeviceConnectionType: Any
IpuOptionsCreator: Any
IpuExecutionProfileType: Any
IpuSchedulingAlgorithm: Any
SyntheticDataCategory: Any
StochasticRoundingBehaviour: Any

_schema.declare(
    globals(),
    "config.proto",
    """
    enum IpuSelectionOrder
      AUTO ZIGZAG SNAKE HOOF
    enum IpuDeviceConnectionType
      ALWAYS ON_DEMAND NEVER PRE_COMPILE
    enum IpuOptionsCreator
      INVALID IPU_UTILS
    enum IpuExecutionProfileType
      NO_PROFILE DEVICE_PROFILE IPU_PROFILE TILE_PROFILE
    enum IpuSchedulingAlgorithm
      CHOOSE_BEST CLUSTERING POST_ORDER LOOK_AHEAD SHORTEST_PATH
    enum SyntheticDataCategory
      Seed Infeed Outfeed HostEmbedding Parameters Unknown
    enum StochasticRoundingBehaviour
      StochasticRounding_Off StochasticRounding_On
      StochasticRounding_ReplicaIdenticalOnly

    message IpuOptions
      IpuModelConfig.compile_ipu_code bool 1
      IpuModelConfig.tiles_per_ipu int64 2
      IpuModelConfig.ipu_model_version string 3

      Profiling.enable_compilation_trace bool 1
      Profiling.enable_poplar_reports_text bool 2
      Profiling.enable_io_trace bool 3
      Profiling.execution_trace_type IpuExecutionProfileType 4
      Profiling.report_every_nth_execution int64 5
      Profiling.enable_ipu_trace_events bool 7
      Profiling.enable_poplar_reports_cbor bool 8
      Profiling.report_directory string 9
      Profiling.max_report_size int64 10
      Profiling.graph_options PoplarOptionFlag* 11
      Profiling.enable_poplar_graph bool 13

      DeviceConfig.selection|auto_count int32 1
      DeviceConfig.selection|cfg_index int32 2

      SpeedSizeConfig.always_rearrange_copies_on_the_host bool 1
      SpeedSizeConfig.disable_graph_outlining bool 3
      SpeedSizeConfig.allow_recompute bool 4
      SpeedSizeConfig.merge_infeed_io_copies bool 6
      SpeedSizeConfig.scheduler_selection IpuSchedulingAlgorithm 7

      FloatingPointBehaviour.inv bool 2
      FloatingPointBehaviour.div0 bool 3
      FloatingPointBehaviour.oflo bool 4
      FloatingPointBehaviour.esr StochasticRoundingBehaviour 5
      FloatingPointBehaviour.nanoo bool 6

      IpuAlgebraicSimplifierConfig.enable_fast_math bool 1
      IpuAlgebraicSimplifierConfig.enable_dot_strength bool 2

      ipu_model_config .IpuModelConfig 1
      profiling .Profiling 2
      compilation_options PoplarOptionFlag* 3
      device_config .DeviceConfig* 4
      speed_size_config .SpeedSizeConfig 5
      convolution_options PoplarOptionFlag* 6
      matmul_options PoplarOptionFlag* 7
      pooling_options PoplarOptionFlag* 8
      clear_matmul_pass_type bool 9
      deprecated bool 10
      max_cross_replica_sum_buffer_size int64 11
      max_reduce_scatter_buffer_size int64 12
      floating_point_behaviour .FloatingPointBehaviour 13
      max_inter_ipu_copies_buffer_size int64 14
      max_send_recv_cluster_size int64 15
      max_scheduler_lookahead_depth int64 16
      max_scheduler_search_space_size int64 17
      prefetch_data_streams bool 18
      enable_multi_slice_combiner bool 19
      enable_matmul_combiner bool 20
      selection_order IpuSelectionOrder 21
      disable_gather_simplifier bool 22
      serialization_folder string 23
      device_connection_type IpuDeviceConnectionType 24
      ipu_version string 25
      creator_id IpuOptionsCreator 27
      use_stable_norm_statistics bool 28
      num_io_tiles int64 29
      gcl_options PoplarOptionFlag* 30
      triangular_solve_expander_block_size int64 31
      enable_experimental_remote_buffer_embedding bool 32
      enable_fast_math bool 33
      multi_replica_process_count int64 34
      multi_replica_process_index int64 35
      minimum_remote_tensor_size int64 36
      place_ops_on_io_tiles bool 37
      enable_remote_buffers_without_device bool 38
      remote_buffer_merging_mode ThreeState 39
      cholesky_block_size int64 40
      experimental_distributed_batch_norm_replica_group_size int64 41
      io_tile_available_memory_proportion double 42
      slice_options PoplarOptionFlag* 43
      max_reduce_many_buffer_size int64 44
      algebraic_simplifier_config .IpuAlgebraicSimplifierConfig 45
      enable_experimental_prng_stability bool 46
      max_all_gather_buffer_size int64 47
      enable_dynamic_slice_replacement bool 48
    """,
    imports=(option_flag_pb2, threestate_pb2),
)
