"""Tags: what is known about an op beyond its operands.

Facades put attributes on the ops they make, which `popple.marks` lists. For everything
else the op's name and its traceback tell. A backward op has the name of the forward op
it was made for inside its own, and inherits what it does not say itself.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sysconfig
from pathlib import Path
from typing import Any

from popple.capture.tensorflow.builder import Mark
from popple.capture.tensorflow.framework import (
    Operation,
    name_of,
    original_op,
    sharded_chip,
    user_frames,
)
from popple.graph import Phase
from popple.marks import (
    ACCUMULATION,
    LAYER,
    OFF_CHIP,
    PHASE,
    SCHEDULE,
    SHARDING,
    STAGE,
    STAGE_OPTIONS,
)

_PHASES = {phase.value.encode(): phase for phase in Phase}
_GRADIENTS = re.compile(r"gradient_tape|gradients(_\d+)?")
# Scopes that TensorFlow adds, not the user: they would split a layer in reports.
_CONTROL = re.compile(
    r"(while|cond|case|StatefulPartitionedCall|PartitionedCall)(_\d+)?"
)

# Packages beside which users do not write: TensorFlow, Keras, Popple, Python itself.
_INSTALLED = ("tensorflow", "tf_keras", "keras", "absl", "wrapt", "six")
_SITES = {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}
_LIBRARY_ROOTS = (
    *(f"{site}{os.sep}{name}{os.sep}" for site in _SITES for name in _INSTALLED),
    f"{Path(__file__).parents[2]}{os.sep}",
    f"{Path(__file__).parents[3] / 'tensorflow_ipu'}{os.sep}",
    f"{Path(__file__).parents[3] / 'ipu_tensorflow_addons'}{os.sep}",
    f"{Path(os.__file__).parent}{os.sep}",
)
# Code typed at a prompt has no file, but is the user's all the same.
_TYPED = ("<stdin>", "<ipython")


@dataclasses.dataclass(frozen=True)
class Tag:
    """Where an op comes from.

    `phase` is None where neither the op nor its surroundings say: the phases of its
    inputs decide then. `name` is the op's own behind those of the scopes around it.
    """

    name: str
    phase: Phase | None = None
    mark: Mark = dataclasses.field(default_factory=Mark)
    module: str = ""
    line: str = ""
    accumulation: int = 1
    schedule: int | None = None
    off_chip: frozenset[str] = frozenset()
    stage_options: str = ""


class Tagger:
    """Makes the tags of a program, in the order in which its ops are walked."""

    def __init__(self) -> None:
        self._forward: dict[str, Tag] = {}
        self._scopes: dict[str, Tag] = {}
        self._lines: dict[tuple[tuple[str, int], ...], str] = {}
        self._made: dict[tuple[Operation, str, Phase | None], Tag] = {}

    def tag(self, op: Operation, scope: str, phase: Phase | None) -> Tag:
        """The tag of an op inside calls named `scope`, which say `phase`."""
        key = (op, scope, phase)
        if key not in self._made:  # loops come by more than once
            self._made[key] = self._make(op, scope, phase)
        return self._made[key]

    def _make(self, op: Operation, scope: str, phase: Phase | None) -> Tag:
        own = name_of(op)
        name = full_name(scope, own)
        found = Tag(name, phase, Mark(), name.rpartition("/")[0], self._line(op))
        found = _with_attrs(found, op.node_def.attr)
        partner = self._find_partner(op)
        if partner is None:
            self._forward[own] = found
            # A gradient often names only the scope of its forward op: the first op
            # stands for it.
            self._scopes.setdefault(own.rpartition("/")[0], found)
            return found
        return dataclasses.replace(
            found,
            phase=found.phase or Phase.BACKWARD,
            mark=either(found.mark, partner.mark),
            module=partner.module,
            line=partner.line or found.line,
        )

    def _find_partner(self, op: Operation) -> Tag | None:
        """The tag of the forward op that an op is the gradient of."""
        if (original := original_op(op)) is not None:
            return self._forward.get(name_of(original), Tag(""))
        parts = forward_name(name_of(op))
        if parts is None:
            return None
        # The longest name first: gradient ops add parts behind that of the forward op.
        for end in range(len(parts), 0, -1):
            name = "/".join(parts[:end]).removesuffix("_grad")
            if found := self._forward.get(name) or self._scopes.get(name):
                return found
        return Tag("", module=full_name("", "/".join(parts)).rpartition("/")[0])

    def _line(self, op: Operation) -> str:
        frames = tuple(user_frames(op))
        if frames not in self._lines:
            self._lines[frames] = _find_line(frames)
        return self._lines[frames]


def either(mark: Mark, other: Mark) -> Mark:
    """What a mark says, and where it says nothing, what the other one does."""
    return Mark(
        other.stage if mark.stage is None else mark.stage,
        other.chip if mark.chip is None else mark.chip,
    )


def forward_name(name: str) -> list[str] | None:
    """Parts of the name behind the scope that gradients are made in, if it has one."""
    parts = name.split("/")
    scopes = [i for i, part in enumerate(parts) if _GRADIENTS.fullmatch(part)]
    return parts[scopes[-1] + 1 :] if scopes else None


def full_name(scope: str, name: str) -> str:
    """The name of an op inside calls: loops, branches and calls are left out of it.

    What functions are traced in often begins with the scope they are called in.
    """
    *inner, last = name.split("/")
    parts = [part for part in inner if not _CONTROL.fullmatch(part)]
    outer = [part for part in scope.split("/") if part]
    shared = next((n for n in range(len(outer), 0, -1) if outer[-n:] == parts[:n]), 0)
    return "/".join([*outer, *parts[shared:], last])


def _with_attrs(tag: Tag, attrs: Any) -> Tag:
    stage = attrs[STAGE].i if STAGE in attrs else None
    chip = sharded_chip(attrs[SHARDING].s) if SHARDING in attrs else None
    module = attrs[LAYER].s.decode() if LAYER in attrs else tag.module
    phase = _PHASES.get(attrs[PHASE].s, tag.phase) if PHASE in attrs else tag.phase
    return dataclasses.replace(
        tag,
        mark=Mark(stage, chip),
        module=module,
        phase=phase,
        accumulation=attrs[ACCUMULATION].i if ACCUMULATION in attrs else 1,
        schedule=attrs[SCHEDULE].i if SCHEDULE in attrs else None,
        off_chip=_words(attrs[OFF_CHIP].s) if OFF_CHIP in attrs else frozenset(),
        stage_options=(
            attrs[STAGE_OPTIONS].s.decode() if STAGE_OPTIONS in attrs else ""
        ),
    )


def _words(text: bytes) -> frozenset[str]:
    return frozenset(text.decode().split())


def _find_line(frames: tuple[tuple[str, int], ...]) -> str:
    """`file:line` of the innermost frame outside libraries, or an empty string."""
    # `<...>` is no file that a user could open, but for code typed at a prompt.
    for name, line in reversed(frames):
        if name.startswith(_TYPED) or not name.startswith(("<", *_LIBRARY_ROOTS)):
            return f"{Path(name).name}:{line}"
    return ""
