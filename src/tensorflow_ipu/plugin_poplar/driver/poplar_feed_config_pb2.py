"""What a feed queue is: its id, mode, types and depth."""

from __future__ import annotations

from typing import Any

from tensorflow.core.framework import types_pb2

from . import _schema

PoplarFeedConfig: Any

_schema.declare(
    globals(),
    "poplar_feed_config.proto",
    """
    enum PoplarFeedConfig.Mode
      GetAll GetLast
    message PoplarFeedConfig
      feed_id string 2
      mode .Mode 3
      tf_data_types DataType* 4
      prefetch_depth int64 5
      reusable bool 6
      optimise_latency bool 7
    """,
    imports=(types_pb2,),
)
