"""PyTorch front end: trace a module's step into aten operators, lower it to a Graph.

TraceRequest --trace_step--> TracedStep --lower_step--> LoweredStep (a Graph)
                             `-> engine.torch replays its graph module
"""

from popple.capture.torch.control import TracedBranch, TracedLoop, all_nodes
from popple.capture.torch.effects import (
    find_overwritten,
    is_random,
    overwritten_arguments,
)
from popple.capture.torch.libraries import PlainOperators, plain_operators
from popple.capture.torch.lower import LoweredStep, LowerRequest, lower_step
from popple.capture.torch.operators import (
    HostFunction,
    gelu_erf,
    mark,
    note,
    note_node,
    print_tensor,
)
from popple.capture.torch.questions import (
    constant_outputs,
    find_loss,
    gradient_nodes,
)
from popple.capture.torch.rules import DynamicShape, Unsupported, ValueNeeded
from popple.capture.torch.tags import FIRST_BLOCK, NO_BLOCK, Block, Tag
from popple.capture.torch.trace import (
    ActiveTrace,
    Forward,
    PlainForward,
    TracedStep,
    TraceRequest,
    trace_step,
)

__all__ = [
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
    "PlainOperators",
    "Tag",
    "TraceRequest",
    "TracedBranch",
    "TracedLoop",
    "TracedStep",
    "Unsupported",
    "ValueNeeded",
    "all_nodes",
    "constant_outputs",
    "find_loss",
    "find_overwritten",
    "gelu_erf",
    "gradient_nodes",
    "is_random",
    "lower_step",
    "mark",
    "note",
    "note_node",
    "overwritten_arguments",
    "plain_operators",
    "print_tensor",
    "trace_step",
]
