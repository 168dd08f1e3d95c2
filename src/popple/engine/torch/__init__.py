"""PyTorch engine: replay of traced steps, weight updates, accumulation, replicas."""

from popple.engine.torch.backends import (
    BACKENDS,
    DEVICES,
    check_backend,
    function_maker,
)
from popple.engine.torch.cuda_graphs import CudaGraphs, GpuCapture
from popple.engine.torch.numerics import Arithmetic, Numerics, choose_numerics
from popple.engine.torch.replay import Replay, build_replay
from popple.engine.torch.rewrites.outbox import Outbox, with_outbox
from popple.engine.torch.run import DeviceMemory, InferenceEngine, TrainingEngine
from popple.engine.torch.updates.clip import clip_gradients
from popple.engine.torch.updates.compiled import compiled_update
from popple.engine.torch.updates.loss_scale import AutomaticScaling, LossScale
from popple.engine.torch.updates.update import (
    STATE_SLOTS,
    ParameterGroup,
    UpdateRule,
    apply_update,
    initial_state,
    with_equal_steps,
)

__all__ = [
    "BACKENDS",
    "DEVICES",
    "STATE_SLOTS",
    "Arithmetic",
    "AutomaticScaling",
    "CudaGraphs",
    "DeviceMemory",
    "GpuCapture",
    "InferenceEngine",
    "LossScale",
    "Numerics",
    "Outbox",
    "ParameterGroup",
    "Replay",
    "TrainingEngine",
    "UpdateRule",
    "apply_update",
    "build_replay",
    "check_backend",
    "choose_numerics",
    "clip_gradients",
    "compiled_update",
    "function_maker",
    "initial_state",
    "with_equal_steps",
    "with_outbox",
]
