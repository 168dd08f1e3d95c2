"""Notes: advice of front ends and passes to the planner about one op.

An attribute says what an op computes and belongs to its kind; a note says how the op is
to be run and may stand on any op. A wrong note costs time or memory, never values, and
an op without notes is run as `PlanOptions` says for all. Notes but checkpoints are part
of an op's `Signature`: ops with different notes are planned apart and share no code.

`render_notes` and `parse_notes` are the text form: JSON with what is not the default.
Notes travel in it through a framework's graph, whose marks are texts.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from popple.errors import GraphError, suggest
from popple.graph.types import DType

_PARTIALS = (DType.F32, DType.F16)


class LinearPass(enum.Enum):
    """Which product of a linear layer in training an op is."""

    FORWARD = "forward"
    INPUT_GRAD = "input_grad"
    WEIGHT_GRAD = "weight_grad"


@dataclass(frozen=True)
class LinearProduct:
    """A matrix product as one of a linear layer's three.

    `is_turned`: its rows are the outputs of the layer, as in a gradient of weights that
    is computed the other way round.
    """

    part: LinearPass
    is_turned: bool = False


@dataclass(frozen=True)
class MultiConv:
    """A group of convolutions that the program declared independent of each other.

    `group` is a name that no other group has. `reserved_tiles` are kept for each of the
    others when the largest gets its tiles, `cycle_back_off` is how much longer than its
    best plan it may take for each of them; None leaves PopLibs' values.
    """

    group: str
    reserved_tiles: int | None = None
    cycle_back_off: float | None = None


class SplitDimension(enum.Enum):
    """What of a matrix product is cut."""

    ROWS = "rows"
    INNER = "inner"
    COLUMNS = "columns"


@dataclass(frozen=True)
class SerialSplit:
    """A matrix product to be computed in `factor` parts, split along `dimension`.

    The products of its gradients are cut along the same dimension of the layer.
    """

    dimension: SplitDimension
    factor: int


@dataclass(frozen=True)
class Notes:
    """Everything that is told about one op; a field says nothing at its default."""

    memory_proportion: float | None = None
    """Share of a tile's memory for temporaries of the plan. Written by
    `poptorch.set_available_memory`, `MultiConv.availableMemoryProportions` and Poplar's
    `availableMemoryProportion` in TensorFlow; read by `Planner.request`."""

    partials: DType | None = None
    """Type of partial sums, f32 or f16. Written by `MultiConv.partialsTypes` and
    Poplar's `partialsType` in TensorFlow; read by `Planner.request`."""

    block_size: int | None = None
    """Rows of a block of a solver. Written by `poptorch.Attribute(poplin=...)` and the
    block sizes of TensorFlow's configuration; read by `plan/rules/solve.py`."""

    is_checkpoint: bool = False
    """Recomputation keeps the results of the op. Written by
    `poptorch.recomputationCheckpoint`; read by `place/recompute.py`."""

    serial_split: SerialSplit | None = None
    """Written by `poptorch.serializedMatMul`, and by `place.MarkLinearLayers` for the
    gradients of such a product; read by `plan/rules/matmul.py`."""

    multi_conv: MultiConv | None = None
    """Written by the front ends for `MultiConv` and `multi_conv`, and by
    `place.GroupConvolutions` for gradients; read by that pass and by
    `plan/side_by_side.py`."""

    side_by_side: str = ""
    """Name of the ops that run at the same time on tiles of their own; they stand in a
    row. Written by `place.GroupConvolutions`; read by `plan/side_by_side.py` and where
    steps are merged (`Emitter`)."""

    linear: LinearProduct | None = None
    """Written by `place.MarkLinearLayers`; read by `plan/rules/matmul.py`."""

    labels: tuple[tuple[str, str], ...] = ()
    """Names and texts that the program put on a part of itself, sorted. Written by
    `poptorch.Attribute`; nobody reads them, but ops with different labels share no
    code, which is what programs use them for."""

    def __post_init__(self) -> None:
        if self.partials is not None and self.partials not in _PARTIALS:
            known = " or ".join(dtype.value for dtype in _PARTIALS)
            what = f"partial sums cannot be {self.partials.value}, only {known}."
            raise GraphError(what)

    def said(self) -> dict[str, Any]:
        """What the notes say: the fields that are not at their default."""
        return _said(self)

    def updated(self, other: Notes) -> Notes:
        """These notes, with those of `other` in their place where it says something.

        Labels of both are kept; of one name, the text of `other`.
        """
        said = other.said()
        if "labels" in said:
            said["labels"] = sorted_labels({**dict(self.labels), **dict(other.labels)})
        return replace(self, **said) if said else self


# One object for nearly all ops: comparing signatures stops at identity.
NO_NOTES = Notes()
"""The notes of an op that nobody said anything about."""


def sorted_labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Labels in the form in which equal ones are equal."""
    return tuple(sorted(labels.items()))


def render_notes(notes: Notes) -> str:
    """What the notes say, as JSON; `parse_notes` gives them back."""
    data = {name: _as_json(value) for name, value in notes.said().items()}
    # As an object, so that the text reads like what the program wrote.
    if "labels" in data:
        data["labels"] = dict(notes.labels)
    return json.dumps(data)


def parse_notes(text: str) -> Notes:
    """The notes that `render_notes` wrote; an empty text says nothing."""
    data: dict[str, Any] = json.loads(text) if text else {}
    for name in data:
        if name not in _READERS:
            what = f"there is no note {name!r}."
            raise GraphError(what, remedy=suggest(name, _READERS))
    try:
        return Notes(**{name: _READERS[name](value) for name, value in data.items()})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise GraphError(f"cannot read the notes {text}: {error}.") from error


# How each note is read back from JSON.
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "memory_proportion": float,
    "partials": DType,
    "block_size": int,
    "is_checkpoint": bool,
    "serial_split": lambda data: SerialSplit(
        SplitDimension(data["dimension"]), int(data["factor"])
    ),
    "multi_conv": lambda data: MultiConv(**data),
    "side_by_side": str,
    "linear": lambda data: LinearProduct(
        LinearPass(data["part"]), bool(data.get("is_turned", False))
    ),
    "labels": sorted_labels,
}


def _said(record: Any) -> dict[str, Any]:
    """The fields of a record of notes that are not at their default."""
    values = {item.name: (getattr(record, item.name), item) for item in fields(record)}
    return {n: value for n, (value, item) in values.items() if value != item.default}


def _as_json(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if not is_dataclass(value):
        return value
    return {name: _as_json(part) for name, part in _said(value).items()}
