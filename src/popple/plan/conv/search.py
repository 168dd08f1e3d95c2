"""The search: the split with the fewest cycles whose temporaries fit.

In: a ConvProblem, a Chip and the plan options. Out: a `Choice`, the best solution, the
next best ones and what bounds it. Forms and methods are tried best rate first, and not
at all once their inner loops alone take longer than a plan already found. Serial parts
are tried when the plan one would like does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from popple.plan.conv.cost import Costs, SplitCost, estimate_costs
from popple.plan.conv.methods import find_methods
from popple.plan.conv.problem import ConvProblem
from popple.plan.conv.setting import Setting
from popple.plan.conv.splits import Candidates, Serial, Split, find_candidates
from popple.plan.conv.transforms import find_forms
from popple.target import Chip
from popple.units import ceil_div

NUM_RUNNERS_UP = 3
# Alternatives kept of one evaluation: enough for the best plan and its runners-up.
_KEPT_EACH = 1 + NUM_RUNNERS_UP
_MAX_SERIAL_PARTS = 256
# Memory counts as what bounds a plan if it costs more than a tenth.
_NOTICEABLE = 1.1
_FIRST_KIND = "ipu1"


@dataclass(frozen=True)
class Solution:
    """One split in one setting, with its cost."""

    setting: Setting
    split: Split
    cost: SplitCost

    @property
    def cycles(self) -> int:
        """Estimated cycles of the plan."""
        return self.cost.total

    @property
    def memory_bytes(self) -> int:
        """Temporary bytes on the fullest tile."""
        return self.cost.memory_bytes


@dataclass(frozen=True)
class Choice:
    """The plan taken, those not taken, and what it would take with all memory."""

    best: Solution
    runners_up: tuple[Solution, ...]
    wished_cycles: int

    @property
    def is_memory_bound(self) -> bool:
        """Whether a plan that needs too much memory is noticeably faster."""
        return self.best.cycles > _NOTICEABLE * self.wished_cycles


@dataclass(frozen=True)
class _Evaluation:
    """Costs of all splits of one form, method and number of serial parts."""

    setting: Setting
    candidates: Candidates
    costs: Costs

    def least_cycles(self, limit_bytes: float) -> float:
        """Cycles of the best candidate within the limit; infinite without one."""
        fits = self.costs.memory_bytes <= limit_bytes
        return float(self.costs.total[fits].min()) if fits.any() else math.inf

    def find_best(
        self, limit_bytes: float, reference: tuple[int, ...] = ()
    ) -> list[Solution]:
        """The best few candidates within the limit, least excess first."""
        fits = np.flatnonzero(self.costs.memory_bytes <= limit_bytes)
        if not len(fits):
            return []
        cycles = self.costs.total[fits]
        excess = self.costs.excess(reference)[fits] if reference else 0 * cycles
        # By excess first, then by cycles: the last key of lexsort counts most.
        order = np.lexsort((cycles, excess))[:_KEPT_EACH]
        return [
            Solution(self.setting, self.candidates.at(index), self.costs.at(index))
            for index in fits[order].tolist()
        ]


@lru_cache(maxsize=4096)
def find_choice(
    problem: ConvProblem,
    chip: Chip,
    memory_proportion: float,
    reference: tuple[int, ...] = (),
) -> Choice:
    """The best plan for the problem, with its alternatives.

    With the cycles of a reference, cause by cause, the best is the one that exceeds
    them least: it runs beside the reference, phase by phase.
    """
    limit_bytes = memory_proportion * chip.tile_memory_bytes
    # Serial parts cost time: they are only looked at if memory decides.
    evaluations = _evaluate_parallel(problem, chip, limit_bytes)
    wished = min(e.least_cycles(math.inf) for e in evaluations)
    fitting = min(e.least_cycles(limit_bytes) for e in evaluations)
    if fitting > wished:
        evaluations += _evaluate_serial(evaluations, limit_bytes, fitting)
    limit_bytes = _relax(evaluations, limit_bytes, chip)
    ranked = _rank(evaluations, limit_bytes, reference)
    return Choice(ranked[0], _distinct(ranked), int(wished))


def _evaluate_parallel(
    problem: ConvProblem, chip: Chip, limit_bytes: float
) -> list[_Evaluation]:
    pool = [
        (method.least_cycles(form.problem, chip.num_tiles), number, form, method)
        for number, form in enumerate(find_forms(problem))
        for method in find_methods(form.problem, chip)
    ]
    pool.sort(key=lambda entry: entry[:2])
    evaluations: list[_Evaluation] = []
    fitting = math.inf
    for least_cycles, _, form, method in pool:
        # Sorted by this bound: no later method can beat what was found.
        if least_cycles > fitting and evaluations:
            break
        evaluation = _evaluate(Setting(form, method, chip, Serial()))
        fitting = min(fitting, evaluation.least_cycles(limit_bytes))
        evaluations.append(evaluation)
    return evaluations


def _evaluate(setting: Setting) -> _Evaluation:
    candidates = find_candidates(
        setting.form.problem, setting.method, setting.chip.num_tiles, setting.serial
    )
    return _Evaluation(setting, candidates, estimate_costs(candidates, setting))


def _evaluate_serial(
    evaluations: list[_Evaluation], limit_bytes: float, fitting: float
) -> list[_Evaluation]:
    """Serial parts of every form and method that may beat what fits already."""
    found: list[_Evaluation] = []
    for parallel in sorted(evaluations, key=lambda e: e.least_cycles(math.inf)):
        if parallel.least_cycles(math.inf) >= fitting:
            break
        for along_out in (True, False):
            for evaluation in _serial_series(parallel.setting, along_out, limit_bytes):
                found.append(evaluation)
                fitting = min(fitting, evaluation.least_cycles(limit_bytes))
    return found


def _serial_series(
    setting: Setting, along_out: bool, limit_bytes: float
) -> Iterator[_Evaluation]:
    """More and more parts, until that no longer helps."""
    problem, method = setting.form.problem, setting.method
    channels, group = (
        (problem.out_channels, method.out_group)
        if along_out
        else (problem.in_channels, method.in_group)
    )
    previous = math.inf
    for parts in serial_parts(channels, group):
        found = [
            _evaluate(replace(setting, serial=serial))
            for serial in _serials(parts, along_out, setting.chip)
        ]
        yield from found
        cycles = min(evaluation.least_cycles(limit_bytes) for evaluation in found)
        # More parts cost more slices; once that outweighs the memory, it only gets
        # worse.
        if previous < math.inf and cycles >= previous:
            return
        previous = cycles


def _serials(parts: int, along_out: bool, chip: Chip) -> tuple[Serial, ...]:
    """Ways to compute so many parts: those of output channels may keep the inputs.

    PopLibs' planner has had the choice since release 2.2 (lib/poplin/ConvModel.cpp,
    broadcastInputBeforeLoop), the last to run its tests on chips of the first kind was
    2.0.
    """
    if not along_out:
        return (Serial(in_parts=parts),)
    plain = Serial(out_parts=parts)
    if chip.architecture == _FIRST_KIND:
        return (plain,)
    return plain, replace(plain, keeps_inputs=True)


def serial_parts(channels: int, group: int) -> list[int]:
    """Numbers of serial parts: divisors of the channels, a group or more in each.

    Parts must be equal, as one body of the loop serves them all.
    """
    most = min(ceil_div(channels, group), _MAX_SERIAL_PARTS)
    return [parts for parts in range(2, most + 1) if channels % parts == 0]


def _relax(evaluations: list[_Evaluation], limit_bytes: float, chip: Chip) -> float:
    """The limit, doubled until some plan fits; dropped beyond twice the memory.

    A limit of 0 asks for the least temporary memory.
    """
    least = min(int(e.costs.memory_bytes.min()) for e in evaluations)
    if limit_bytes <= 0:
        return least
    while limit_bytes < least:
        limit_bytes *= 2
        # Such a plan cannot run; the fastest is reported, and that it does not fit.
        if limit_bytes > 2 * chip.tile_memory_bytes:
            return math.inf
    return limit_bytes


def _rank(
    evaluations: list[_Evaluation], limit_bytes: float, reference: tuple[int, ...]
) -> list[Solution]:
    solutions = [s for e in evaluations for s in e.find_best(limit_bytes, reference)]
    return sorted(
        solutions, key=lambda s: (s.cost.excess(reference), s.cycles, s.memory_bytes)
    )


def _distinct(ranked: list[Solution]) -> tuple[Solution, ...]:
    """The next best solutions that do not cost exactly what a better one does."""
    seen = {(ranked[0].cycles, ranked[0].memory_bytes)}
    found: list[Solution] = []
    for solution in ranked[1:]:
        key = (solution.cycles, solution.memory_bytes)
        if key not in seen:
            seen.add(key)
            found.append(solution)
    return tuple(found[:NUM_RUNNERS_UP])
