"""PyTorch front end: a module becomes a traced step and a Graph.

TraceRequest --trace_step--> TracedStep --lower_step--> LoweredStep (a Graph)
                             `-> engine.torch replays its graph module
"""

from popple.capture.torch.constants import constant_outputs, is_random
from popple.capture.torch.lower import LoweredStep, LowerRequest, lower_step
from popple.capture.torch.overwrites import find_overwritten, overwritten_arguments
from popple.capture.torch.tags import Tag
from popple.capture.torch.trace import (
    ActiveTrace,
    TracedStep,
    TraceRequest,
    trace_step,
)

__all__ = [
    "ActiveTrace",
    "LowerRequest",
    "LoweredStep",
    "Tag",
    "TraceRequest",
    "TracedStep",
    "constant_outputs",
    "find_overwritten",
    "is_random",
    "lower_step",
    "overwritten_arguments",
    "trace_step",
]
