"""Random numbers, made where they are needed.

As in PopLibs poprand, an op with a seed of its own sends it to all tiles, sets their
generators and gives them back the state they had.
"""

from __future__ import annotations

from popple.graph import DType
from popple.plan.builder import PlanBuilder, vertices
from popple.plan.codelets.random import WORD_CYCLES, random_cycles, set_seed_cycles
from popple.plan.codelets.rates import multi_codelet, num_lanes
from popple.plan.mapping import mapping_like
from popple.plan.opplan import OpPlan, PlanRequest, Rule
from popple.plan.rules.fill import template_mapping
from popple.program import Category, TileVector

SEED_BYTES = 8
STATE_BYTES = 16  # of the generator of one worker


def plan_random(request: PlanRequest) -> OpPlan:
    """One pass of the generators; dropout gives its mask beside the result."""
    builder = PlanBuilder(request, "random")
    kind, results = request.signature.kind, request.signature.outputs
    target = template_mapping(builder)
    _set_seed(builder)
    lanes, workers = num_lanes(results[0].dtype), builder.num_workers
    builder.elementwise(
        kind,
        multi_codelet(f"poprand::{_codelet_name(kind)}", results[0].dtype, 350, 24),
        target,
        results[0],
        lambda n: random_cycles(kind, n, lanes, workers),
        num_edges=1 + len(request.inputs),
    )
    states = _on_all_tiles(builder, STATE_BYTES * workers)
    # Saved before the seed is set and restored behind the op, so held all the time.
    builder.hold("generators", states, 0)
    outputs = [mapping_like(target, result) for result in results]
    return builder.finish(outputs, (None,) * len(request.inputs))


def _set_seed(builder: PlanBuilder) -> None:
    """Multicast the seed; every worker of every tile makes a state from it."""
    tiles, cycles = builder.request.num_tiles, set_seed_cycles(builder.num_workers)
    seed = TileVector.spread(SEED_BYTES, 1, tiles, SEED_BYTES)
    needs = _on_all_tiles(builder, SEED_BYTES)
    moved = builder.move("seed/multicast", seed, needs)
    codelet = multi_codelet("poprand::SetSeed", DType.U32, 120, 16)
    group = vertices(codelet, _on_all_tiles(builder, 1), lambda _: cycles)
    last = builder.compute("seed/set", group)
    builder.hold("seed/message", needs, moved, last, Category.MESSAGE)


def _on_all_tiles(builder: PlanBuilder, value: int) -> TileVector:
    tiles = builder.request.num_tiles
    return TileVector.spread(tiles, tiles, tiles).scaled(value)


def _codelet_name(kind: str) -> str:
    return "".join(part.title() for part in kind.split("_"))


RULES: dict[str, Rule] = dict.fromkeys(WORD_CYCLES, plan_random)
