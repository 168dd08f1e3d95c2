"""`IpuTraceEvent`: what happened on a device, as `ipu_event_trace` tells it."""

from __future__ import annotations

from typing import Any

from . import _schema

IpuTraceEvent: Any
IpuTraceCompileBeginEvent: Any
IpuTraceCompileEndEvent: Any
IpuTraceDataTransferEvent: Any
IpuTraceLoadEngineEvent: Any
IpuTraceExecuteEvent: Any

_schema.declare(
    globals(),
    "trace.proto",
    """
    message IpuTraceCompileBeginEvent
      deprecated_1 bytes 1
      module_name bytes 2
    message IpuTraceCompileEndEvent
      duration int64 1
      module_name bytes 2
      tensor_map bytes 3
      instruction_info bytes 4
    message IpuTraceDataTransferEvent
      data_transfer bytes 1
    message IpuTraceLoadEngineEvent
      module_name bytes 1
    message IpuTraceExecuteEvent
      activity_trace bytes 1
      module_name bytes 2

    enum IpuTraceEvent.Type
      COMPILE_BEGIN COMPILE_END HOST_TO_DEVICE_TRANSFER DEVICE_TO_HOST_TRANSFER
      LOAD_ENGINE EXECUTE
    message IpuTraceEvent
      timestamp double 1
      ordinal int32 2
      type .Type 3
      msg|compile_begin IpuTraceCompileBeginEvent 5
      msg|compile_end IpuTraceCompileEndEvent 6
      msg|data_transfer IpuTraceDataTransferEvent 7
      msg|load_engine IpuTraceLoadEngineEvent 8
      msg|execute IpuTraceExecuteEvent 9
    """,
    package="tensorflow",
)
