"""Options of Poplar for the stages of a pipeline."""

from __future__ import annotations

from typing import Any

from . import _schema, option_flag_pb2

PipelineStagePoplarConfig: Any
PipelinePoplarConfig: Any

_schema.declare(
    globals(),
    "pipeline_config.proto",
    """
    message PipelineStagePoplarConfig
      convolution_options PoplarOptionFlag* 1
      matmul_options PoplarOptionFlag* 2
      slice_options PoplarOptionFlag* 3
    message PipelinePoplarConfig
      forward_stages PipelineStagePoplarConfig* 1
      backward_stages PipelineStagePoplarConfig* 2
      resource_update PipelineStagePoplarConfig 3
    """,
    imports=(option_flag_pb2,),
)
