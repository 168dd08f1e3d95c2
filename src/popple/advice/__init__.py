"""Why a program does not fit, and what to do: every remedy modelled, none guessed.

In: a `Case`: captured graph, options and machine, as a report holds them too.

changes   one thing each that can be done about memory
split     a concrete split over more chips, layer by layer
advice    the search: changes alone, together, over more chips; ranked
page      the advice as text
subjects  `advise`: of a report, a model, a facade's object
"""

from popple.advice.advice import Advice, Outcome, Remedy, advise_case, outcome_of
from popple.advice.page import render_advice, render_verdict
from popple.advice.subjects import advise
from popple.case import Case, parse_case, render_case

__all__ = [
    "Advice",
    "Case",
    "Outcome",
    "Remedy",
    "advise",
    "advise_case",
    "outcome_of",
    "parse_case",
    "render_advice",
    "render_case",
    "render_verdict",
]
