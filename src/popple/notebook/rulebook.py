"""All rules for notebooks, in the order of their numbers.

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

_FAMILIES = (
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
        (rule for family in _FAMILIES for rule in family.RULES),
        key=lambda rule: rule.number,
    )
)
