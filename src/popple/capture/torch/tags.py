"""Tags of traced operators: phase, block, module and user's line, forward and backward.

A dispatch mode sees every operator the traced step runs, forward and backward, and
marks the traced nodes it causes. A backward operator inherits the tag of the forward
operator that autograd made it from; the two share autograd's sequence number.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, get_proxy_mode
from torch.utils._python_dispatch import TorchDispatchMode

from popple.capture.torch.known_results import KnownResults
from popple.capture.torch.recording import record
from popple.graph import NO_NOTES, Notes, Phase
from popple.marks import TAG
from popple.quick import quick, replaced

_LIBRARIES = (
    Path(torch.__file__).parent,
    Path(__file__).parents[3] / "popple",
    Path(__file__).parents[3] / "poptorch",
    Path(dataclasses.__file__).parent,
)
_LIBRARY_ROOTS = tuple(f"{directory}{os.sep}" for directory in _LIBRARIES)
# torch_geometric writes code of its layers to files of its own, anywhere.
_LIBRARY_MODULES = ("torch_geometric.", "poptorch_geometric.")
# Often enough for the eye: a hundred operators are traced in some 30 ms.
_OPERATORS_PER_MOVE = 100
# Code typed at a prompt has no file, but is the user's all the same.
_TYPED = ("<stdin>", "<ipython")


@dataclasses.dataclass(frozen=True)
class Block:
    """A part of the program that the user placed: its name, chip and stage."""

    name: str
    chip: int
    stage: int


FIRST_BLOCK = Block("", 0, 0)
"""The block of ops before the user's first one."""

NO_BLOCK = Block("", -1, -1)
"""Marks ops after a block has ended and before the next begins: in no block."""


@quick
@dataclasses.dataclass(frozen=True, slots=True)
class Tag:
    """Where an op comes from: phase, block, module path and the user's line.

    `block` is the one in force when the op ran. None stands for a backward op
    without a forward partner, to be placed beside its operands. `scope` is the name
    that the user gave to a part of the program, `notes` what is noted on all its ops. A
    backward op has the `number` of its forward partner.
    """

    phase: Phase
    block: Block | None
    module: str = ""
    line: str = ""
    scope: str = ""
    notes: Notes = NO_NOTES
    number: int = -1


class _Pace:
    """How far a trace has come: modules entered forward, operators run backward.

    Forward runs about half as many operators as backward does, which ends with the
    first module: how many there will be is an estimate, and the share stops below 1.
    """

    def __init__(self, num_modules: int, moved: Callable[[float], None]) -> None:
        self.num_forward = 0
        self._num_modules = num_modules
        self._num_entered = 0
        self._num_backward = 0
        self._moved = moved

    def enter_module(self) -> None:
        self._num_entered += 1
        self._moved(min(self._num_entered / (self._num_modules + 1), 1.0) / 3)

    def run_backward(self) -> None:
        self._num_backward += 1
        if self._num_backward % _OPERATORS_PER_MOVE == 0:
            run = self._num_backward / max(1, 2 * self.num_forward)
            self._moved(1 / 3 + min(run, 0.99) * 2 / 3)


class Tagger(TorchDispatchMode):
    """Marks the nodes of the graph being traced with a Tag.

    The front end sets `block`, `scopes` and `notes` while the forward pass runs and
    calls `start_backward` before it differentiates. `modules` names the modules whose
    paths are wanted; `moved` is told now and then which share of the work is done.
    """

    def __init__(
        self,
        modules: dict[int, str],
        moved: Callable[[float], None] = lambda share: None,
    ) -> None:
        super().__init__()
        self.block = FIRST_BLOCK
        self.scopes: list[str] = []
        self.notes = NO_NOTES
        self._modules = modules
        self._pace = _Pace(len(modules), moved)
        self._numbers = itertools.count()
        self._path: list[str] = []
        self._thread = threading.get_ident()
        self._is_backward = False
        self._forward_tags: dict[int, Tag] = {}
        self._results = KnownResults()

    def start_backward(self) -> None:
        """From here on, operators belong to the backward pass."""
        self._is_backward = True
        self._pace.num_forward = len(self._forward_tags)

    @contextmanager
    def watch_modules(self) -> Iterator[None]:
        """Follow entry to and exit from modules."""
        hooks = (
            nn.modules.module.register_module_forward_pre_hook(self._enter),
            nn.modules.module.register_module_forward_hook(
                self._leave, always_call=True
            ),
        )
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    # Hooks are those of the process: other threads may run modules of their own.

    def _enter(self, module: nn.Module, _: Any) -> None:
        # Unknown modules too: entry and exit must balance.
        if threading.get_ident() == self._thread:
            self._path.append(self._modules.get(id(module), ""))
            self._pace.enter_module()

    def _leave(self, module: nn.Module, _: Any, __: Any) -> None:
        if self._path and threading.get_ident() == self._thread:
            self._path.pop()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled while a step is traced, so nothing has to be kept out.

        PyTorch asks; otherwise it would wrap what follows, which is called for every
        operator, in a function that keeps its compiler out.
        """
        return False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one operator and tag the nodes it added."""
        # Three calls of four: PyTorch asks tensors for their device, which is known.
        if func is torch.ops.prim.device.default and type(args[0]) is FakeTensor:
            return args[0].fake_device
        proxy_mode = get_proxy_mode()
        if proxy_mode is None:
            return func(*args, **(kwargs or {}))
        result, added = self._run(proxy_mode, func, args, kwargs or {})
        if added:
            tag = self._backward_tag() if self._is_backward else self._forward_tag()
            for node in added:
                node.meta[TAG] = tag
        return result

    def _run(
        self,
        proxy_mode: ProxyTorchDispatchMode,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[Any, list[Node]]:
        """What an operator returns, and the nodes it adds."""
        recorded = record(proxy_mode, func, args, kwargs, self._results)
        if recorded is not None:
            return recorded
        # One operator may add several nodes, decomposed ones for example; all get its
        # tag.
        nodes = proxy_mode.tracer.graph.nodes
        newest = newest_node(nodes)
        result = func(*args, **kwargs)
        return result, nodes_after(nodes, newest)

    def _forward_tag(self) -> Tag:
        module = next((path for path in reversed(self._path) if path), "")
        tag = Tag(
            Phase.FORWARD,
            self.block,
            module,
            user_line(),
            "/".join(self.scopes),
            self.notes,
            next(self._numbers),
        )
        # Autograd numbers its nodes as it records them, just before the operator
        # reaches us: a number seen for the first time belongs to this operator. One
        # seen before means that autograd did not record this operator.
        self._forward_tags.setdefault(torch.autograd._get_sequence_nr() - 1, tag)
        return tag

    def _backward_tag(self) -> Tag:
        self._pace.run_backward()
        node = torch._C._current_autograd_node()
        partner = None
        if node is not None:
            partner = self._forward_tags.get(node._sequence_nr())
        if partner is None:
            return Tag(Phase.BACKWARD, None)
        # Chip, stage, module and line of the forward op: its gradient runs there too.
        return replaced(partner, phase=Phase.BACKWARD)


def newest_node(nodes: Any) -> Node | None:
    """The node added last."""
    return next(iter(reversed(nodes)), None)


def nodes_after(nodes: Any, newest: Node | None) -> list[Node]:
    """Nodes added behind `newest`, newest last."""
    added: list[Node] = []
    for node in reversed(nodes):
        if node is newest:
            break
        added.append(node)
    return added[::-1]


def user_line() -> str:
    """`file:line` of the innermost frame outside libraries, or an empty string."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_users(frame):
            return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def failing_line(error: BaseException) -> str:
    """`file:line` of the user's innermost frame that raised, or an empty string."""
    frames = traceback.walk_tb(error.__traceback__)
    places = [(frame, line) for frame, line in frames if _is_users(frame)]
    if not places:
        return ""
    frame, line = places[-1]
    return f"{Path(frame.f_code.co_filename).name}:{line}"


def _is_users(frame: FrameType) -> bool:
    if str(frame.f_globals.get("__name__")).startswith(_LIBRARY_MODULES):
        return False
    name = frame.f_code.co_filename
    return name.startswith(_TYPED) or not name.startswith(("<", *_LIBRARY_ROOTS))
