"""The op without a rule of its own: priced by what it reads and writes."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef(
        "generic",
        "generic",
        "A framework op the table has no entry for, named by `framework_op`.",
        arity=(0, None),
        num_outputs=None,
        attrs=("framework_op",),
    ),
)
