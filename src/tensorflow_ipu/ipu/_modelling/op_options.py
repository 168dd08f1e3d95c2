"""Options of Poplar for kinds of ops, as notes that the planner reads.

In: the device's IpuOptions and the options of a pipeline's stages. Out: `OpOptions` for
the core, whose pass `ApplyOpOptions` puts them on the ops of a program.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from popple.errors import UsageError
from popple.graph import DType, Notes, Phase
from popple.options import OpOptions

__all__ = ["check_options", "notes_of", "op_options"]

# Recurrent layers and solvers begin with the options of products (rnn_util.cc and
# poplar_util.cc of the device's TensorFlow).
_FIELDS = {
    "matmul": "matmul_options",
    "conv": "convolution_options",
    "gather": "slice_options",
    "recurrent": "matmul_options",
    "solve": "matmul_options",
}
_LISTS = frozenset(_FIELDS.values())
_PARTIALS = {"half": DType.F16, "float": DType.F32}
# Rows of a block where the configuration does not say: XLA's own (poplar_executor.h).
_BLOCK_SIZE = 128
_BLOCK_SIZES = {
    "cholesky": "cholesky_block_size",
    "triangular_solve": "triangular_solve_expander_block_size",
}


def op_options(configured: Any, stage_options: str = "") -> OpOptions:
    """What is said about products, convolutions, slices and solvers.

    `configured` are the device's IpuOptions, `stage_options` those of a pipeline's
    stages, as they are marked with.
    """
    stages = json.loads(stage_options) if stage_options else {}
    everywhere = {field: _pairs(getattr(configured, field)) for field in _LISTS}
    return OpOptions(
        by_family=_by_family(everywhere),
        by_stage={
            (Phase(phase), stage): _by_family(options)
            for phase, of_phase in stages.items()
            for stage, options in enumerate(of_phase)
        },
        by_kind={kind: _block_notes(configured, kind) for kind in _BLOCK_SIZES},
    )


def notes_of(options: Mapping[str, Any]) -> Notes:
    """What options of Poplar are in the planner's words; others change no plan."""
    proportion = _proportion(options)
    return Notes(
        memory_proportion=proportion if proportion > 0 else None,
        partials=_PARTIALS.get(str(options.get("partialsType"))),
    )


def check_options(configured: Any) -> None:
    """Refuse values that no plan could be made with, before a program runs."""
    for field in sorted(_LISTS):
        _proportion(_pairs(getattr(configured, field)), field)


def _proportion(options: Mapping[str, Any], where: str = "") -> float:
    given = options.get("availableMemoryProportion") or 0
    try:
        return float(given)
    except ValueError:
        raise UsageError(
            f"availableMemoryProportion must be a number, but is {given!r}.",
            where=where,
            remedy='Write it like {"availableMemoryProportion": "0.6"}.',
        ) from None


def _by_family(options: Mapping[str, Mapping[str, Any]]) -> dict[str, Notes]:
    """Notes by family from options by the name of their field."""
    return {family: notes_of(options[field]) for family, field in _FIELDS.items()}


def _pairs(items: Iterable[Any]) -> dict[str, str]:
    return {item.option: item.value for item in items}


def _block_notes(configured: Any, kind: str) -> Notes:
    size = getattr(configured, _BLOCK_SIZES[kind])
    return Notes(block_size=size if size > 0 else _BLOCK_SIZE)
