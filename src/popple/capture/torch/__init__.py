"""PyTorch front end: a module becomes a traced step and a Graph.

TraceRequest --trace_step--> TracedStep --lower_step--> LoweredStep (a Graph)
                             `-> engine.torch replays its graph module
"""

from popple.capture.torch.constants import constant_outputs, is_random
from popple.capture.torch.exposed import expose, find_loss, gradient_nodes
from popple.capture.torch.gradient_counts import with_gradient_counts
from popple.capture.torch.libraries import PlainOperators, register_plain_operators
from popple.capture.torch.lower import LoweredStep, LowerRequest, lower_step
from popple.capture.torch.operators import (
    HostFunction,
    mark,
    note,
    note_node,
    print_tensor,
)
from popple.capture.torch.overwrites import find_overwritten, overwritten_arguments
from popple.capture.torch.tags import Tag, failing_line
from popple.capture.torch.trace import (
    ActiveTrace,
    TracedStep,
    TraceRequest,
    trace_step,
)

__all__ = [
    "ActiveTrace",
    "HostFunction",
    "LowerRequest",
    "LoweredStep",
    "PlainOperators",
    "Tag",
    "TraceRequest",
    "TracedStep",
    "constant_outputs",
    "expose",
    "failing_line",
    "find_loss",
    "find_overwritten",
    "gradient_nodes",
    "is_random",
    "lower_step",
    "mark",
    "note",
    "note_node",
    "overwritten_arguments",
    "print_tensor",
    "register_plain_operators",
    "trace_step",
    "with_gradient_counts",
]
