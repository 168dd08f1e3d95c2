"""PyTorch sessions: compile a step, hold its device memory, run calls.

    step      one micro-batch, traced, lowered and ready to be replayed
    session   a step with its memory on the device: what a call runs
    memory    the device's copies of weights and buffers
    groups    weights that differ between groups of replicas
    outputs   outputs of micro-batches put together; tensors that are watched
    random    the device's random numbers
    backend   where and how steps are executed
    kept      steps in files, for caches and executables
    fingerprint   what a trace depends on, as one digest

Front ends give plain data and the small protocol `capture.torch.Forward`; they keep
names, option rules and the words of errors.
"""

from popple.engine.torch.backends import Backend, chosen_backend
from popple.engine.torch.session.groups import (
    GroupedMemory,
    Groupings,
    GroupKind,
    ReplicaGrouping,
)
from popple.engine.torch.session.outputs import OutputCollector, Watched
from popple.engine.torch.session.random import DeviceRandom
from popple.engine.torch.session.session import SessionOptions, TorchSession
from popple.engine.torch.session.step import (
    CompiledStep,
    FreshCapture,
    StepRequest,
    compile_step,
)

__all__ = [
    "Backend",
    "CompiledStep",
    "DeviceRandom",
    "FreshCapture",
    "GroupKind",
    "GroupedMemory",
    "Groupings",
    "OutputCollector",
    "ReplicaGrouping",
    "SessionOptions",
    "StepRequest",
    "TorchSession",
    "Watched",
    "chosen_backend",
    "compile_step",
]
