"""PyTorch front end: a module becomes a traced step and a Graph.

TraceRequest --trace_step--> TracedStep --lower_step--> LoweredStep (a Graph)
                             `-> engine.torch replays its graph module
"""

from popple.capture.torch.lower import LoweredStep, LowerRequest, lower_step
from popple.capture.torch.operators import HostFunction, mark, print_tensor
from popple.capture.torch.overwrites import find_overwritten, overwritten_arguments
from popple.capture.torch.questions import (
    constant_outputs,
    draws_random_numbers,
    find_loss,
    gradient_nodes,
)
from popple.capture.torch.rules import DynamicShape, Unsupported, ValueNeeded
from popple.capture.torch.tags import ATTRS, FIRST_BLOCK, NO_BLOCK, Block, Tag
from popple.capture.torch.trace import (
    ActiveTrace,
    Forward,
    PlainForward,
    TracedStep,
    TraceRequest,
    trace_step,
)

__all__ = [
    "ATTRS",
    "FIRST_BLOCK",
    "NO_BLOCK",
    "ActiveTrace",
    "Block",
    "DynamicShape",
    "Forward",
    "HostFunction",
    "LowerRequest",
    "LoweredStep",
    "PlainForward",
    "Tag",
    "TraceRequest",
    "TracedStep",
    "Unsupported",
    "ValueNeeded",
    "constant_outputs",
    "draws_random_numbers",
    "find_loss",
    "find_overwritten",
    "gradient_nodes",
    "lower_step",
    "mark",
    "overwritten_arguments",
    "print_tensor",
    "trace_step",
]
