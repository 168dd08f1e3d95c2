"""`advise`: advice on whatever a user has: a report, a model, a facade's object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from popple.advice.advice import Advice, Progress, advise_case
from popple.case import Case, parse_case
from popple.errors import ReportError
from popple.pipeline import Modelled, modelled
from popple.report import Report, open_report


def advise(
    subject: Any, *, always: bool = False, progress: Progress = lambda text: None
) -> Advice:
    """Does it fit, what is its memory for, and what would make it fit.

    `subject` is a report or its directory, what `model_graph` gives, a `Case` or a
    facade's object. Remedies are modelled where the program does not fit, or `always`.
    """
    if isinstance(subject, Case):
        return advise_case(subject, always=always, progress=progress)
    if isinstance(subject, str | Path):
        with open_report(Path(subject)) as report:
            return advise(report, always=always, progress=progress)
    if isinstance(subject, Report):
        case = case_of_report(subject)
        return advise_case(case, always=always, progress=progress)
    model = subject if isinstance(subject, Modelled) else modelled(subject)
    find_case = getattr(subject, "__popple_case__", None)
    case = find_case() if find_case else _case_of(model)
    return advise_case(case, model, always=always, progress=progress)


def case_of_report(report: Report) -> Case:
    """The program of a report, as it was captured."""
    if not report.case_text:
        raise ReportError(
            f"{report.path} does not hold the program it is about.",
            remedy="Genuine reports never do; write one with: popple run --report DIR.",
        )
    return parse_case(report.case_text)


def _case_of(model: Modelled) -> Case:
    return Case(model.captured, model.target, model.options)
