"""Derived: constants that rest on rows, and what they would be without some of them.

A row that a constant was derived from says little about the model: it is marked, and
summaries are made with such rows and without. `without_own` goes further: a constant is
derived again from the rows outside a family, and the family is modelled with that.

In: rows by set. Out: which are marked; the results of each family with constants that
know nothing of it.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.calibration import compiler
from benchmarks.calibration.rows import Result, Row, Rows
from popple.sim import elements
from popple.target import library

Change = Callable[[float], None]
"""Sets a constant for the rest of the process"""
ModelAll = Callable[[Sequence[Rows], Callable[[], None]], list[Result]]
"""Models rows in processes of their own, in which a constant may be changed first"""


@dataclass(frozen=True)
class Constant:
    """A constant that was derived from rows.

    `rows` finds the names of these, in the set and of the quantity, on the chip if one
    is named. `tells` finds those that it can be derived from again, by the least median
    error over the candidates; the first of these is the value as it stands. Without
    candidates it rests on its rows alone.
    """

    name: str
    set_name: str
    quantity: str
    rows: str
    chip: str = ""
    tells: str = ""
    candidates: tuple[float, ...] = ()
    change: Change | None = None

    def is_derived_from(self, set_name: str, row: Row) -> bool:
        """Whether the row is one of those that it was derived from."""
        return self._is_of(set_name, row) and bool(re.search(self.rows, row.name))

    def is_told_by(self, set_name: str, row: Row) -> bool:
        """Whether it can be derived from the row again."""
        is_named = bool(self.tells and re.search(self.tells, row.name))
        return self._is_of(set_name, row) and is_named

    def _is_of(self, set_name: str, row: Row) -> bool:
        is_place = set_name == self.set_name and self.chip in ("", row.chip)
        return is_place and re.search(self.quantity, row.quantity) is not None


def _change_chip(chip: str, field: str, value: float) -> None:
    """Another value of a constant of a built-in chip, in every system that has it."""
    load = library._load_builtin_chip

    def changed(name: str) -> object:
        found = load(name)
        return replace(found, **{field: int(value)}) if name == chip else found

    library._load_builtin_chip = changed
    library._load_builtin_system.cache_clear()


def _change_tail(value: float) -> None:
    elements.TAIL_BYTES = int(value)


def _change_start(value: float) -> None:
    compiler.SYNCS_BY_START = int(value)


_PRODUCTS = r"^(gemm_|fc_layer_|bert_(ffn|kqv|proj))"
# Of each family enough to tell: every product is planned again for each candidate.
_SOME_PRODUCTS = r"^(gemm_1000x|gemm_200x64|fc_layer_(16|32)_|bert_(ffn2|proj))"
_SMALL_LAYERS = r"^fc_layer_|reduce|pool"

CONSTANTS = (
    Constant(
        "operand_bytes of GC200",
        "compiler",
        "^max tile bytes$",
        _PRODUCTS,
        "gc200",
        _SOME_PRODUCTS,
        (16384, 8, 4096, 8192),
        partial(_change_chip, "gc200", "operand_bytes"),
    ),
    Constant(
        "operand_bytes of GC2",
        "compiler",
        "^max tile bytes$",
        _PRODUCTS,
        "gc2",
        _SOME_PRODUCTS,
        (8, 4096, 8192, 16384),
        partial(_change_chip, "gc2", "operand_bytes"),
    ),
    Constant(
        "TAIL_BYTES",
        "compiler",
        "^max tile bytes$",
        rf"{_PRODUCTS}|conv|resnet|vgg|alexnet|inception|mobilenet",
        tells=_SOME_PRODUCTS,
        candidates=(24, 0, 8, 16, 32),
        change=_change_tail,
    ),
    Constant(
        "data that copies gather, behind what they read (sim/elements.py)",
        "compiler",
        "^max tile bytes$",
        r"^cholesky|^triangular_solve|^inception_.*pool|^embedding",
    ),
    # All rows of these machines are of one family, so nothing else tells.
    Constant(
        "link_latency_ns between GC2", "kernels", "", r"^gb_phase_16_.*globExchange"
    ),
    Constant("external_sync_ns of the DSS8440", "kernels", "", "^gb_phase_16_.*_sync"),
    Constant(
        "code sizes of vertices (plan/codelets/sizes.py)",
        "memory",
        "vertex (code|state)|all bytes",
        "^(efficientnet|bert_large_squad)",
    ),
    Constant(
        "syncs with the host at the start of a program (compiler.start_cycles)",
        "compiler",
        "^cycles$",
        _SMALL_LAYERS,
        tells=_SMALL_LAYERS,
        candidates=(1, 0),
        change=_change_start,
    ),
    Constant(
        "seconds between runs on PopART (pretraining.py)",
        "models",
        "",
        r"^mlperf_v2\.0_(paddle_)?bert",
    ),
    Constant(
        "seconds of a call on the host (models.py)", "models", "", "^poprt_rn50_bs1$"
    ),
    # A second buffer for images would not fit, and this run did.
    Constant(
        "one buffer for each stream on I/O tiles (plan/lowering/io_tiles.py)",
        "memory",
        "^fits$",
        "^poprt_rn50_fp16_overlapped_io_bs90$",
    ),
    Constant(
        "small variables in gaps (sim/elements.py)",
        "memory",
        "^fits$",
        "^vit_b16_inf_oom$",
    ),
)


def is_marked(set_name: str, row: Row) -> bool:
    """Whether a constant was derived from the row."""
    return any(each.is_derived_from(set_name, row) for each in CONSTANTS)


def independent(set_name: str, results: Iterable[Result]) -> list[Result]:
    """The results of rows that no constant was derived from."""
    return [each for each in results if not is_marked(set_name, each.row)]


def without_own(
    set_name: str, rows: Sequence[Rows], results: Sequence[Result], model: ModelAll
) -> tuple[list[str], list[Result]]:
    """Results of a set, each family by constants that were derived without it.

    Rows whose constant cannot be derived without them are left out; families that no
    constant rests on have the results that they have. With a sentence for each constant
    and family that rests on it.
    """
    trials = _Trials(set_name, rows, results, model)
    sentences: list[str] = []
    found: list[Result] = []
    for family in dict.fromkeys(each.row.group for each in results):
        own = [each for each in results if each.row.group == family]
        for constant in CONSTANTS:
            if any(constant.is_derived_from(set_name, each.row) for each in own):
                words, own = trials.family(family, constant, own)
                sentences.append(f"{family}: {constant.name} {words}")
        found += own
    return sentences, found


class _Trials:
    """What telling rows say of each candidate; modelled once, used by all families."""

    def __init__(
        self,
        set_name: str,
        rows: Sequence[Rows],
        results: Sequence[Result],
        model: ModelAll,
    ) -> None:
        self._set_name = set_name
        self._rows = rows
        self._results = results
        self._model = model
        self._found: dict[str, Mapping[float, list[Result]]] = {}

    def family(
        self, family: str, constant: Constant, own: list[Result]
    ) -> tuple[str, list[Result]]:
        """What a constant is without a family, and the family's results with that."""
        if constant.change is None:
            is_own = partial(constant.is_derived_from, self._set_name)
            return "rests on its rows alone", [e for e in own if not is_own(e.row)]
        value = self._derive(constant, family)
        if value != constant.candidates[0]:
            own = self._again(own, constant, value)
        return f"is {value:g} without it", own

    def _derive(self, constant: Constant, family: str) -> float:
        """The candidate with the least median error on rows of other families."""
        sizes: dict[float, float] = {}
        for value, results in self._trials(constant).items():
            others = [
                abs(e.error) for e in results if e.row.group != family and e.modelled
            ]
            sizes[value] = statistics.median(others) if others else 0.0
        # Where other rows do not tell, the first candidate stays.
        return min(constant.candidates, key=lambda value: sizes[value])

    def _trials(self, constant: Constant) -> Mapping[float, list[Result]]:
        if constant.name not in self._found:
            assert constant.change is not None
            first, *more = constant.candidates
            telling = [e for e in self._rows if self._tells(constant, e.rows)]
            found = {first: list(self._results)}
            for value in more:
                found[value] = self._model(telling, partial(constant.change, value))
            self._found[constant.name] = {
                value: [e for e in results if self._tells(constant, (e.row,))]
                for value, results in found.items()
            }
        return self._found[constant.name]

    def _tells(self, constant: Constant, rows: Iterable[Row]) -> bool:
        return any(constant.is_told_by(self._set_name, row) for row in rows)

    def _again(
        self, own: list[Result], constant: Constant, value: float
    ) -> list[Result]:
        """These results with another value of a constant."""
        names = {each.row.name for each in own}
        rows = [each for each in self._rows if each.rows[0].name in names]
        assert constant.change is not None
        again = self._model(rows, partial(constant.change, value))
        return [each for each in again if each.row in {e.row for e in own}]
