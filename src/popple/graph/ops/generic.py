"""The op without a rule of its own: modelled by what it reads and writes."""

from popple.graph.attrs import text
from popple.graph.opdef import OpDef

OPS = (
    OpDef(
        "generic",
        "generic",
        "A framework op the table has no entry for.",
        arity=(0, None),
        num_outputs=None,
        attrs=(text("framework_op", "The framework's name of the op."),),
    ),
)
