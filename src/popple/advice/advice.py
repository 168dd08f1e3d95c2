"""Advice: does a program fit, what its memory is for, and what would make it fit.

In: a case. Out: an `Advice`, whose remedies have each been modelled: changes one by
one, then together, then over more chips, until the program fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from popple.advice.changes import (
    CHANGES,
    Change,
    Turn,
    halve_accumulators,
    merged_words,
    num_chips,
    recompute,
    shrink_micro_batch,
    split_over,
)
from popple.advice.split import kept_bytes
from popple.case import Case
from popple.errors import PoppleError
from popple.pipeline import Modelled, model_graph
from popple.plan import PlanStore
from popple.record import ChipMemory, memory_by_role

Progress = Callable[[str], None]

_MIN_SAVED = 0.01  # of a tile's memory: less is not worth a change
_MAX_DROPS = 2
_FAR = 1.5  # of a tile's memory: what remains to be changed does not save that much

# A pipeline recomputes by itself.
_BESIDE_SPLIT = tuple(c for c in CHANGES if c.apply is not recompute)
# More micro-batches accumulate, so that nothing is known yet of accumulators.
_WITH_ACCUMULATION = tuple(c for c in CHANGES if c.apply is halve_accumulators)
_SMALLER = tuple(c for c in CHANGES if c.name == "half the micro-batch")


@dataclass(frozen=True)
class Outcome:
    """What the model says of a case: memory, time and chips."""

    fits: bool
    peak_tile_bytes: int
    tile_memory_bytes: int
    cycles: int
    samples_per_second: float
    num_chips: int

    @property
    def speed(self) -> float:
        """Samples per second of each chip, by which remedies are compared."""
        return self.samples_per_second / self.num_chips


@dataclass(frozen=True)
class Remedy:
    """One or several changes, how to make them, and what comes of it."""

    changes: tuple[str, ...]
    how: tuple[str, ...]
    outcome: Outcome
    case: Case = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """The changes in words."""
        return " + ".join(self.changes)


@dataclass(frozen=True)
class Advice:
    """The verdict on a program and what can be done, best first.

    `memory` is what the fullest tile of each chip holds, by role. There are no
    remedies for a program that fits, unless they were asked for.
    """

    title: str
    outcome: Outcome
    memory: tuple[ChipMemory, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def first(self) -> Remedy | None:
        """The best remedy."""
        return self.remedies[0] if self.remedies else None

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "title": self.title,
            "outcome": asdict(self.outcome),
            "memory": [
                {**asdict(each), "bytes_by_role": dict(each.bytes_by_role)}
                for each in self.memory
            ],
            "remedies": [
                {
                    "changes": list(each.changes),
                    "how": list(each.how),
                    "outcome": asdict(each.outcome),
                }
                for each in self.remedies
            ],
        }


def advise_case(
    case: Case,
    modelled: Modelled | None = None,
    *,
    always: bool = False,
    progress: Progress = lambda text: None,
) -> Advice:
    """Advice on a case; `modelled` is its model, if there is one already.

    Remedies are modelled where the program does not fit, or `always`.
    """
    search = _Search(progress)
    modelled = modelled or search.model("as it is", case)
    outcome = outcome_of(modelled)
    memory = tuple(memory_by_role(modelled.graph, modelled.simulation))
    title = modelled.graph.name
    if outcome.fits and not always:
        return Advice(title, outcome, memory)
    found = search.remedies(case, outcome)
    return Advice(title, outcome, memory, tuple(sorted(found, key=_rank)))


def outcome_of(modelled: Modelled) -> Outcome:
    """What a model says."""
    simulation = modelled.simulation
    return Outcome(
        simulation.fits,
        simulation.peak_tile_bytes,
        modelled.target.chip.tile_memory_bytes,
        simulation.cost.cycles,
        modelled.samples_per_second,
        simulation.program.num_chips,
    )


def _rank(remedy: Remedy) -> tuple[bool, float, int]:
    """Those that fit first, the quickest of them; then those nearest to fitting."""
    outcome = remedy.outcome
    if outcome.fits:
        return False, -outcome.speed, len(remedy.changes)
    return True, outcome.peak_tile_bytes, len(remedy.changes)


class _Search:
    """Models changed cases; plans that one needed are there for the next."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._store = PlanStore()

    def model(self, what: str, case: Case) -> Modelled:
        """Model a case."""
        self._progress(what)
        return model_graph(case.graph, case.target, case.options, store=self._store)

    def remedies(self, case: Case, base: Outcome) -> list[Remedy]:
        """All that were modelled: changes alone, together, then with fewer samples at
        a time, then over more chips, until one fits."""
        single = [r for each in CHANGES if (r := self._try(case, [each]))]
        if base.fits or any(each.outcome.fits for each in single):
            return single
        useful = _useful(single, base)
        found = single
        for attempt in (self._together, self._smaller, self._more_chips):
            remedy = attempt(case, useful, base)
            found = [*found, remedy] if remedy else found
            if remedy and remedy.outcome.fits:
                break
        return found

    def _together(
        self, case: Case, useful: list[Remedy], base: Outcome
    ) -> Remedy | None:
        """Several changes: as many as their savings say, else all of them."""
        if len(useful) < 2:
            return None
        over = base.peak_tile_bytes - base.tile_memory_bytes
        saved = 0
        few: list[Remedy] = []
        for each in useful:
            few.append(each)
            saved += base.peak_tile_bytes - each.outcome.peak_tile_bytes
            if saved >= over and len(few) > 1:
                break
        changes = _changes(few)
        remedy = self._try(case, changes)
        if remedy and not remedy.outcome.fits and len(few) < len(useful):
            changes = _changes(useful)
            remedy = self._try(case, changes)
        if remedy and remedy.outcome.fits:
            return self._with_fewer(case, [], changes, remedy)
        return remedy

    def _smaller(
        self, case: Case, useful: list[Remedy], base: Outcome
    ) -> Remedy | None:
        """Ever smaller micro-batches with what else is useful."""
        changes = [c for c in _changes(useful) if c not in _SMALLER]
        changes += [c for c in _WITH_ACCUMULATION if c not in changes]
        best: Remedy | None = None
        factor = 4
        while case.options.micro_batch % factor == 0:
            size = case.options.micro_batch // factor
            name, anew = f"micro-batches of {size}", shrink_micro_batch(factor)
            smaller = Change(name, anew, Turn.CAPTURE)
            found = self._try(case, changes, [smaller])
            if found is None:
                return best
            if found.outcome.fits:
                return self._with_fewer(case, [smaller], changes, found)
            if best and not _is_better(found, best):
                return best
            best, factor = found, 2 * factor
        return best

    def _more_chips(
        self, case: Case, useful: list[Remedy], base: Outcome
    ) -> Remedy | None:
        """A split over as few chips as can be, with what else it takes.

        The chips that a program has are tried first, if it has several."""
        best: Remedy | None = None
        names = {each.changes[0] for each in useful}
        some = [c for c in _BESIDE_SPLIT if c.name in names or c in _WITH_ACCUMULATION]
        for count in _counts(case):
            if not _has_room(case, count):
                continue
            name = f"a pipeline over {count} IPUs"
            if count == num_chips(case):
                name = "layers cut elsewhere"
            split = Change(name, split_over(count), Turn.SPLIT)
            for changes in (some, _BESIDE_SPLIT):
                found = self._try(case, changes, [split])
                if found is None:
                    break
                best = found
                if found.outcome.fits:
                    return self._with_fewer(case, [split], changes, found)
                if (
                    found.outcome.peak_tile_bytes
                    > _FAR * found.outcome.tile_memory_bytes
                ):
                    break
        return best

    def _with_fewer(
        self,
        case: Case,
        needed: Sequence[Change],
        optional: Sequence[Change],
        found: Remedy,
    ) -> Remedy:
        """The remedy without changes that it is quicker without."""
        made = [each for each in optional if each.name in found.changes]
        for each in made[:_MAX_DROPS]:
            rest = [change for change in made if change is not each]
            fewer = self._try(case, rest, needed)
            if fewer and fewer.outcome.fits and _rank(fewer) < _rank(found):
                found, made = fewer, rest
        return found

    def _try(
        self, case: Case, changes: Iterable[Change], needed: Sequence[Change] = ()
    ) -> Remedy | None:
        """The changes one after the other, modelled; None if a `needed` one does not
        apply, or none at all."""
        made: list[str] = []
        how: list[tuple[str, ...]] = []
        for change in sorted([*needed, *changes], key=lambda each: each.turn):
            if (changed := change.apply(case)) is not None:
                case = changed.case
                made.append(change.name)
                how.append(changed.how)
            elif change in needed:
                return None
        if not made:
            return None
        try:
            outcome = outcome_of(self.model(" + ".join(made), case))
        # A change that cannot be placed or planned is no remedy.
        except PoppleError:
            return None
        return Remedy(tuple(made), merged_words(how), outcome, case)


def _is_better(new: Remedy, old: Remedy) -> bool:
    """Whether a remedy is clearly nearer to fitting than another."""
    return new.outcome.peak_tile_bytes < 0.95 * old.outcome.peak_tile_bytes


def _useful(single: list[Remedy], base: Outcome) -> list[Remedy]:
    """Changes that save memory, those that save most first."""
    least = _MIN_SAVED * base.tile_memory_bytes
    peak = base.peak_tile_bytes
    found = [each for each in single if peak - each.outcome.peak_tile_bytes >= least]
    return sorted(found, key=lambda each: each.outcome.peak_tile_bytes)


def _changes(remedies: Iterable[Remedy]) -> list[Change]:
    names = {name for each in remedies for name in each.changes}
    return [change for change in CHANGES if change.name in names]


def _has_room(case: Case, count: int) -> bool:
    """Whether so many chips could hold the weights with all that is done for it."""
    for change in (split_over(count), *(each.apply for each in _BESIDE_SPLIT[1:])):
        changed = change(case)
        case = case if changed is None else changed.case
    chip = case.target.chip
    room = count * chip.num_tiles * chip.tile_memory_bytes
    return kept_bytes(case.graph, case.options) <= room


def _counts(case: Case) -> list[int]:
    """Numbers of chips to try: powers of two, as machines give them out."""
    most = case.target.system.num_chips // case.options.replicas
    counts: list[int] = []
    count = 2
    while count <= most:
        if count >= num_chips(case):
            counts.append(count)
        count *= 2
    return counts
