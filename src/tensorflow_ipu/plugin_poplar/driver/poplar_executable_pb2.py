"""What is written beside a compiled program: its feeds, signature and versions."""

from __future__ import annotations

from typing import Any

from tensorflow.compiler.xla import xla_data_pb2

from . import _schema, option_flag_pb2, poplar_feed_config_pb2

PoplarExecutableProto: Any
EmbeddedRuntimeConfig: Any
Signature: Any

_schema.declare(
    globals(),
    "poplar_executable.proto",
    """
    message FeedConfig
      config PoplarFeedConfig 1
      shape ShapeProto 2
    message Input
      name string 1
      handle string 2
      argument int64 3
      tuple_index int64 4
      shape ShapeProto 5
    message Output
      name string 1
      handle string 2
      tuple_index int64 3
      shape ShapeProto 4
    message Signature
      inputs Input* 1
      outputs Output* 2
      streamed_inputs Input* 3
      streamed_outputs Output* 4
    message EmbeddedRuntimeConfig
      signature Signature 1
      num_IPUs int64 2
      target_type string 3
      target_arch string 4
      gateway_mode bool 5
      supports_remote_buffers bool 6
      remote_memory_entry_params bool 7
      executable_can_stall bool 8
    message PoplarExecutableProto
      replication_factor uint32 1
      infeeds FeedConfig* 2
      outfeeds FeedConfig* 3
      option_flags PoplarOptionFlag* 4
      logging_cycle_count bool 11
      embedded_runtime_config EmbeddedRuntimeConfig 12
      tf_major_version uint32 13
      tf_minor_version uint32 14
      tf_git_version string 15
      poplar_package_hash string 17
    """,
    imports=(xla_data_pb2, option_flag_pb2, poplar_feed_config_pb2),
)
