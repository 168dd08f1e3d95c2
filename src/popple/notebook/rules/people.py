"""What only people can judge: the checklist of a reviewer."""

from __future__ import annotations

from popple.notebook.rule import Kind, Rule

_QUESTIONS = (
    (14, "introduction", "The summary table is true", "Run it and compare."),
    (
        16,
        "introduction",
        "The introduction states the task or the business problem",
        "Ask someone of the notebook's audience what it is for.",
    ),
    (21, "introduction", "Jargon stands at the end of an outcome", "Turn it round."),
    (
        64,
        "body",
        "Settings that readers care about stand out",
        "Bring them together in the parameters cell.",
    ),
    (66, "body", "Widgets are used where they help", "Try one where a value is tuned."),
    (69, "body", "The checkpoint can be changed", "Change it and run."),
    (
        70,
        "body",
        "The dataset can be changed, and its format is obvious",
        "Put in data of your own.",
    ),
    (82, "attribution", "Content of others was cleared first", "Ask before using it."),
    (83, "process", "Writer and reviewer work as a pair", "Agree on who is who."),
    (
        84,
        "process",
        "Both have a week, and feedback takes hours",
        "Plan the time before starting.",
    ),
    (
        85,
        "process",
        "The story was pitched before it was written",
        "Tell it to the reviewer, the owner of the product and an expert.",
    ),
    (86, "process", "The writer owns the code, the reviewer suggests", "Agree on it."),
    (
        87,
        "process",
        "Fork, branch, pull request, review, merge",
        "See CONTRIBUTING.md.",
    ),
    (88, "process", "Open questions go to the agreed channel", "Ask there."),
)

RULES: tuple[Rule, ...] = tuple(
    Rule(number, part, Kind.HUMAN, message, remedy)
    for number, part, message, remedy in _QUESTIONS
)
