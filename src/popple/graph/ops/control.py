"""Calls, loops and branches: ops that run functions of the graph.

A function is a graph of its own, listed by name beside the main one; its arguments are
what the op gives it, in order. Values are passed by value: a function has memory of its
own for its arguments and results, unless it is called in one place only.

Loops carry values: the body's results are its first arguments the next time. What
follows after them in the inputs is the same in every round.
"""

from popple.graph.attrs import integer, text, texts
from popple.graph.opdef import OpDef

_FUNCTION = text("function", "Name of the function that is run.")

OPS = (
    OpDef(
        "call",
        "control",
        "Run a function once: its arguments to its results.",
        arity=(0, None),
        num_outputs=None,
        attrs=(_FUNCTION,),
    ),
    OpDef(
        "repeat",
        "control",
        "Run a function `count` times: carried values, then those that stay, to "
        "carried values.",
        arity=(1, None),
        num_outputs=None,
        attrs=(_FUNCTION, integer("count", "How often the function runs.")),
    ),
    OpDef(
        "while",
        "control",
        "Run `function` as long as `condition`, which takes the same arguments, gives "
        "true: carried values, then those that stay, to carried values.",
        arity=(1, None),
        num_outputs=None,
        attrs=(
            _FUNCTION,
            text("condition", "Name of the function that decides."),
            integer("count", "How often the function is expected to run."),
        ),
    ),
    OpDef(
        "branch",
        "control",
        "Run one of `functions`, as the first input says: true is the first, a number "
        "counts from 0 and the last one stands for all others. The other inputs are "
        "the arguments of each.",
        arity=(1, None),
        num_outputs=None,
        attrs=(texts("functions", "Names of the functions, one for each case."),),
    ),
)
