"""Case: a captured program with the options and the machine it is modelled with.

What a report has to hold so that its program can be modelled again, with changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from popple.errors import ReportError
from popple.graph import Graph, parse_graph, render_graph
from popple.options import ModelOptions
from popple.plain import from_plain, to_plain
from popple.target import Target

FORMAT = 1

Rebatch = Callable[[int], "Case"]
"""The same program captured with another number of samples in a micro-batch."""


@dataclass(frozen=True)
class Case:
    """A captured graph, how it is placed and planned, and the machine.

    `framework` decides in whose words settings are named. Without `rebatch` the size
    of the micro-batch cannot be changed: the graph holds it in every shape.
    """

    graph: Graph
    target: Target
    options: ModelOptions
    framework: str = ""
    rebatch: Rebatch | None = field(default=None, compare=False)

    def with_options(self, **changed: Any) -> Case:
        """The case with other options."""
        return replace(self, options=replace(self.options, **changed))


def render_case(case: Case) -> str:
    """The case as text, for a report; how to capture it again is lost."""
    return json.dumps(
        {
            "format": FORMAT,
            "framework": case.framework,
            "options": to_plain(case.options),
            "target": to_plain(case.target),
            "graph": render_graph(case.graph),
        }
    )


def parse_case(text: str) -> Case:
    """The case that `render_case` wrote; ReportError if it was another version."""
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}")
        return Case(
            parse_graph(data["graph"]),
            from_plain(Target, data["target"]),
            from_plain(ModelOptions, data["options"]),
            data["framework"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(
            f"its captured program cannot be read: {error}.",
            remedy="Write the report again with this version of Popple.",
        ) from error
