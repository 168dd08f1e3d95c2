"""The rules for notebooks, by family; `ALL` has them in the order of their numbers.

Numbers 1 to 88 are those of the guidelines' table. From 89 on are ours: faults that the
guidelines themselves have and do not name.
"""

from popple.notebook.rules import (
    attribution,
    badges,
    body,
    conclusions,
    configuration,
    devices,
    drafts,
    introduction,
    people,
    running,
    setup,
    structure,
    wording,
)

FAMILIES = (
    structure,
    introduction,
    badges,
    drafts,
    setup,
    configuration,
    body,
    conclusions,
    wording,
    devices,
    running,
    attribution,
    people,
)

ALL = tuple(
    sorted(
        (rule for family in FAMILIES for rule in family.RULES),
        key=lambda rule: rule.number,
    )
)

__all__ = ["ALL"]
