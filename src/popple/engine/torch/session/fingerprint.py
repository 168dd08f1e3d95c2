"""The fingerprint of what a trace depends on: a module, its arguments, PyTorch itself.

Nothing is traced or run. Parameters and buffers count by name, type and shape: a trace
does not see their values, but for single integers, which are compiled in. All other
tensors that the module's code can reach become constants of a step and count by value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload, OpOverloadPacket

from popple.session.fingerprint import Fingerprint, Unknown
from popple.session.outside import looks_up
from popple.session.packages import Packages

_HOOKS = "_hooks"
_PLAIN = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
# Operators that are Python of the user's own are traced into, but cannot be looked at.
_KNOWN_OPERATORS = frozenset({"aten", "prim", "prims", "popple", "higher_order"})
# Lists of weights that are the layer's parameters, put there anew by every trace.
_RECURRENT_LISTS = frozenset({"_flat_weights", "_flat_weight_refs"})
_TENSOR_TYPES = (Tensor, nn.Parameter)


@dataclass(frozen=True)
class TraceIdentity:
    """What tells one trace from another, besides PyTorch and the packages.

    `settings` are plain data of any kind: options, names, versions. A front end that
    replaces classes of modules says by `class_of` which one was meant, and which
    attributes it added in `own_attributes`. `environ` are the variables that the
    module's code may read.
    """

    module: nn.Module
    inputs: Sequence[Tensor]
    arguments: Any
    settings: Mapping[str, Any]
    own_attributes: frozenset[str] = frozenset()
    class_of: Callable[[type], type] = lambda cls: cls
    tensor_classes: tuple[type, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    packages: Packages = field(default_factory=Packages)


def fingerprint_trace(identity: TraceIdentity) -> str:
    """A SHA-256 of all that the trace depends on; Unknown if that cannot be told."""
    describer = _Describer(identity)
    digest = Fingerprint(identity.packages, describer, _refuse, identity.environ)
    digest.add(_torch_state(), "torch")
    digest.add(dict(identity.settings), "settings")
    for index, tensor in enumerate(identity.inputs):
        # A trace sees types of inputs, not values.
        digest.know(tensor, f"input {index} {_type_of(tensor)}")
    digest.add(identity.arguments, "arguments")
    for name, tensor in _state_of(identity.module):
        digest.know(tensor, f"{name} {_type_of(tensor)} {_number(tensor)}")
    for part in (torch, torch.nn.functional, Tensor, nn.Module):
        digest.add(part, "torch")
    digest.add(identity.module, type(identity.module).__name__)
    # Last: only now it is known which packages the program reaches.
    digest.add(tuple(identity.packages.versions()), "versions")
    return digest.hexdigest()


def _state_of(module: nn.Module) -> Iterable[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _type_of(tensor: Tensor) -> str:
    with torch._C.DisableTorchFunctionSubclass():
        return (
            f"{tensor.dtype} {tuple(tensor.shape)} {tensor.stride()} {tensor.device} "
            f"{tensor.layout} {tensor.requires_grad} {isinstance(tensor, nn.Parameter)}"
        )


def _number(tensor: Tensor) -> str:
    """The value of a single integer: it is compiled in."""
    if tensor.numel() != 1 or tensor.is_floating_point() or tensor.is_complex():
        return ""
    with torch._C.DisableTorchFunctionSubclass():
        return str(tensor.detach().item())


def _torch_state() -> tuple[Any, ...]:
    """Switches of PyTorch that decide which operators a program is made of."""
    backends = torch.backends
    module_hooks = vars(nn.modules.module)
    return (
        torch.__version__,
        str(torch.get_default_dtype()),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.is_autocast_enabled("cpu"),
        torch.is_autocast_enabled("cuda"),
        str(torch.get_autocast_dtype("cpu")),
        torch.is_inference_mode_enabled(),
        backends.mkldnn.enabled,
        backends.cudnn.enabled,
        backends.cpu.get_cpu_capability(),
        backends.cuda.flash_sdp_enabled(),
        backends.cuda.mem_efficient_sdp_enabled(),
        backends.cuda.math_sdp_enabled(),
        backends.mha.get_fastpath_enabled(),
        torch.version.cuda,
        torch.cuda.is_available() and torch.cuda.get_device_name(),
        # Hooks on all modules, by whoever put them there.
        tuple(
            tuple(hooks.values())
            for name, hooks in sorted(module_hooks.items())
            if name.startswith("_global_") and isinstance(hooks, dict)
        ),
    )


def _refuse(names: Iterable[str]) -> str:
    """Code that calls operators of the user's own cannot be judged."""
    used = set(names)
    if "ops" not in used:
        return ""
    # Namespaces become attributes of torch.ops as soon as somebody asks for them.
    known = {name for name, found in vars(torch.ops).items() if hasattr(found, "name")}
    own = sorted((known if looks_up(used) else used & known) - _KNOWN_OPERATORS)
    return f"calls operators of {', '.join(own)}" if own else ""


class _Describer:
    """PyTorch's objects as plain values."""

    def __init__(self, identity: TraceIdentity) -> None:
        self._identity = identity

    def __call__(self, value: Any) -> tuple[Any, ...] | None:
        """What an object is; None if it is nothing of PyTorch's."""
        if isinstance(value, _PLAIN):
            return ("torch", str(value))
        if isinstance(value, Tensor):
            return self._describe_tensor(value)
        if isinstance(value, nn.Module):
            return self._describe_module(value)
        if isinstance(value, (OpOverload, OpOverloadPacket)):
            return self._describe_operator(value)
        return None

    def _describe_tensor(self, tensor: Tensor) -> tuple[Any, ...]:
        known = (*_TENSOR_TYPES, *self._identity.tensor_classes)
        if type(tensor) not in known or tensor.layout is not torch.strided:
            raise Unknown(f"a tensor of the class {type(tensor).__name__}")
        return ("tensor", _type_of(tensor), _digest_of(tensor))

    def _describe_module(self, module: nn.Module) -> tuple[Any, ...]:
        if isinstance(module, torch.jit.ScriptModule):
            raise Unknown("a module compiled by TorchScript")
        skipped = self._identity.own_attributes
        if isinstance(module, nn.RNNBase):
            skipped = skipped | _RECURRENT_LISTS
        attributes = {
            # Hooks are found by numbers that count up in a process.
            name: tuple(value.values())
            if name.endswith(_HOOKS) and isinstance(value, dict)
            else value
            for name, value in vars(module).items()
            if name not in skipped
        }
        return ("module", self._identity.class_of(type(module)), attributes)

    def _describe_operator(self, value: Any) -> tuple[Any, ...]:
        name = str(value)
        if name.partition(".")[0] not in _KNOWN_OPERATORS:
            raise Unknown(f"the operator {name}")
        return ("operator", name)


def _digest_of(tensor: Tensor) -> str:
    """The numbers of a tensor, as one digest."""
    with torch._C.DisableTorchFunctionSubclass():
        data = tensor.detach().cpu().contiguous().reshape(-1)
        if not data.numel():
            return ""
        numbers: Any = data.view(torch.uint8).numpy()
        return hashlib.sha256(memoryview(numbers)).hexdigest()
