"""The streaming memory of a machine as the limit of what lies off the chips.

In: a graph with loads and stores, and the target. Out: nothing, or an error: what a
program keeps in remote buffers must fit into the memory of the machines it runs on.
"""

from __future__ import annotations

from collections import Counter

from popple.errors import PlanError
from popple.graph import Graph, Phase, all_ops
from popple.target import Target
from popple.units import ceil_div

_GIGA = 1e9


def verify_streaming_memory(graph: Graph, target: Target) -> None:
    """Refuse a program whose remote buffers are larger than the streaming memory."""
    system = target.system
    each = system.streaming_memory_bytes_per_machine
    # Without streaming memory buffers lie with the host, whose size is not known here.
    if not each:
        return
    replicas = graph.execution.replicas
    num_chips = graph.execution.num_chips * replicas
    machines = ceil_div(num_chips, system.chips_per_machine)
    needed = find_least_bytes(graph) * replicas
    if needed > machines * each:
        raise PlanError(
            f"Its remote buffers take at least {needed / _GIGA:,.1f} GB, and the "
            f"streaming memory of {machines} x {system.name} is "
            f"{machines * each / _GIGA:,.0f} GB.",
            where=f"program {graph.name!r}",
            remedy="Keep more tensors on the chips, or use more machines.",
        )


def find_least_bytes(graph: Graph) -> int:
    """What remote buffers take at least.

    A part of the program loads and stores each tensor once, so what one part moves one
    way are different tensors; another part may move the same ones again.
    """
    moved: Counter[tuple[str, Phase, int]] = Counter()
    for op, home in all_ops(graph):
        if op.kind in ("remote_load", "remote_store"):
            name = op.outputs[0] if op.kind == "remote_load" else op.inputs[0]
            # The update is one part, whatever the stage.
            stage = -1 if op.phase is Phase.UPDATE else op.stage
            moved[op.kind, op.phase, stage] += home.type_of(name).num_bytes
    return max(moved.values(), default=0)
