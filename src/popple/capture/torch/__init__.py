"""PyTorch front end: a module becomes a traced step and a Graph.

    TraceRequest --trace_step--> TracedStep --lower_step--> LoweredStep (a Graph)
                                 `-> engine.torch replays its graph module
"""

from popple.capture.torch.lower import LoweredStep, LowerRequest, lower_step
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
    "TraceRequest",
    "TracedStep",
    "lower_step",
    "trace_step",
]
