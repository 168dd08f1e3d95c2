"""PyTorch front end: a module becomes a traced step and a Graph.

    TraceRequest --trace_step--> TracedStep --lower_step--> LoweredStep (a Graph)
                                 `-> engine.torch replays its graph module
"""

from popple.capture.torch.lower import LoweredStep, LowerRequest, lower_step
from popple.capture.torch.tags import Tag
from popple.capture.torch.trace import (
    ActiveTrace,
    TracedStep,
    TraceRequest,
    overwritten_arguments,
    trace_step,
)

__all__ = [
    "ActiveTrace",
    "LowerRequest",
    "LoweredStep",
    "Tag",
    "TraceRequest",
    "TracedStep",
    "lower_step",
    "overwritten_arguments",
    "trace_step",
]
