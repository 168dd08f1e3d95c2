"""Refused by name: tools of PopXL examples, which Popple does not run."""

raise ModuleNotFoundError(
    "examples_utils.parsing.simple_parsing_tools serves PopXL programs and is not part "
    "of Popple. Install Graphcore's own examples-utils and simple-parsing for it."
)
