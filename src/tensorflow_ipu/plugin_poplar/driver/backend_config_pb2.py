"""What the compiler notes on an instruction: frontend attributes, calls, options."""

from __future__ import annotations

from typing import Any

from tensorflow.compiler.xla import xla_data_pb2

from . import _schema, option_flag_pb2, threestate_pb2

PoplarBackendConfig: Any
FrontendAttributeId: Any
MLType: Any
CollectiveOperator: Any

_schema.declare(
    globals(),
    "backend_config.proto",
    """
    enum FrontendAttributeId
      STOCHASTIC_ROUNDING CALL_CONFIG_TYPE PARTIALS_TYPE GRADIENT_ACCUMULATION_COUNT
      PIPELINE_STAGE_ID PIPELINE_REPEAT_COUNT PIPELINE_SCHEDULE PIPELINE_POPLAR_CONFIG
      OFFLOAD_WEIGHT_UPDATE_VARIABLES NUM_BATCHES_TO_ACCUMULATE ML_TYPE OPTION_FLAGS
      PIPELINE_BATCH_SERIALIZATION_ITERATIONS
      PARTITION_OFFLOADED_WEIGHT_UPDATE_VARIABLES OFFLOAD_ACTIVATIONS
      OFFLOAD_GRADIENT_ACCUMULATION_BUFFERS PARTITION_VARIABLES OFFLOAD_VARIABLES
      RECOMPUTATION_MODE UNIQUE_SHARDING KEEP_INPUT_LAYOUTS
    enum MLType
      NONE INFERENCE_FWD TRAINING_FWD TRAINING_BWD TRAINING_WU
    enum ConvType
      Conv ConvWithReverse
    enum CollectiveOperator
      COLLECTIVE_OP_ADD COLLECTIVE_OP_MUL COLLECTIVE_OP_MIN COLLECTIVE_OP_MAX
      COLLECTIVE_OP_LOGICAL_AND COLLECTIVE_OP_LOGICAL_OR COLLECTIVE_OP_SQUARE_ADD
      COLLECTIVE_OP_LOCAL COLLECTIVE_OP_MEAN
    enum Tileset
      TILESET_COMPUTE_TILES TILESET_IO_TILES
    enum StochasticRoundingMethod
      StochasticRoundingMethod_Undefined StochasticRoundingMethod_DifferingSeeds
      StochasticRoundingMethod_IdenticalSeeds StochasticRoundingMethod_Any
      StochasticRoundingMethod_None

    enum PoplarBackendConfig.CallConfig.Type
      Call RepeatLoop PipelineStage PipelineStageBackward Pipeline
      PipelineStageRecomputation ResourceUpdate Function MultiConv
    enum PoplarBackendConfig.CallConfig.PipelineConfig.Schedule
      Grouped Interleaved Sequential
    enum PoplarBackendConfig.CallConfig.PipelineConfig.RecomputationMode
      Auto Recompute_then_backpropagate Recompute_and_backpropagate_interleaved
    message PoplarBackendConfig
      CallConfig.RepeatConfig.repeat_count int64 1
      CallConfig.RepeatConfig.allow_finer_alias_analysis bool 2
      CallConfig.PipelineStageConfig.stage_id int64 1
      CallConfig.PipelineConfig.batch_serialization_iterations int64 1
      CallConfig.PipelineConfig.repeat_count int64 2
      CallConfig.PipelineConfig.schedule .Schedule 3
      CallConfig.PipelineConfig.offload_activations ThreeState 4
      CallConfig.PipelineConfig.offload_gradient_accumulation_buffers ThreeState 5
      CallConfig.PipelineConfig.partition_variables ThreeState 6
      CallConfig.PipelineConfig.offload_variables ThreeState 7
      CallConfig.PipelineConfig.recomputation_mode .RecomputationMode 8
      CallConfig.PipelineConfig.gradient_accumulation_index int64 9
      CallConfig.FunctionConfig.keep_input_layouts bool 1
      CallConfig.FunctionConfig.unique_sharding bool 2
      CallConfig.FunctionConfig.num_modified_remote_buffer_inputs int64 3
      CallConfig.FunctionConfig.num_unmodified_remote_buffer_inputs int64 4
      CallConfig.FunctionConfig.partitioned_elementwise_cluster bool 5
      CallConfig.ResourceUpdateConfig.offload_variables ThreeState 1
      CallConfig.ResourceUpdateConfig.partition_offloaded_variables ThreeState 2
      CallConfig.type .Type 1
      CallConfig.Config|repeat_config .RepeatConfig 3
      CallConfig.Config|pipeline_stage_config .PipelineStageConfig 4
      CallConfig.Config|pipeline_config .PipelineConfig 5
      CallConfig.Config|function_config .FunctionConfig 6
      CallConfig.Config|resource_update_config .ResourceUpdateConfig 7
      call_config .CallConfig 2
      is_inplace bool 3
      hash_of_custom_attributes int64 4
      stochastic_rounding ThreeState 5
      ml_type MLType 6
      partials_type PrimitiveType 7
      convolution_options PoplarOptionFlag* 8
      matmul_options PoplarOptionFlag* 9
      slice_options PoplarOptionFlag* 10
      tileset Tileset 11
      is_replica_identical bool 12
      stochastic_rounding_method StochasticRoundingMethod 13
    """,
    imports=(xla_data_pb2, option_flag_pb2, threestate_pb2),
)
