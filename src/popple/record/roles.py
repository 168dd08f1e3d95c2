"""Memory by role: what the bytes of the fullest tile of every chip are there for.

In: graph, program and simulation. Out: for every chip the bytes of each role on its
fullest tile, at the step at which it is fullest. They add up to what must fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from popple.graph import Graph, Phase, Role, get_op
from popple.place import is_recomputed
from popple.program import Category, TileVector, busy_chips
from popple.sim import Simulation

WEIGHTS = "weights"
GRADIENTS = "gradients"
STATES = "optimiser state"
ACCUMULATORS = "accumulators"
STASH = "stash"
ACTIVATIONS = "activations"
RECOMPUTED = "recomputed activations"
BUFFERS = "buffers and constants"
TEMPORARIES = "temporaries"
EXCHANGE_CODE = "exchange code"
VERTEX_CODE = "vertex code and state"
CONTROL_CODE = "control code and stacks"
GAPS = "gaps"

ROLES = (
    WEIGHTS,
    GRADIENTS,
    STATES,
    ACCUMULATORS,
    STASH,
    ACTIVATIONS,
    RECOMPUTED,
    BUFFERS,
    TEMPORARIES,
    EXCHANGE_CODE,
    VERTEX_CODE,
    CONTROL_CODE,
    GAPS,
)

_GIVEN = {
    Role.WEIGHT: WEIGHTS,
    Role.STATE: BUFFERS,
    Role.CONSTANT: BUFFERS,
    Role.INPUT: ACTIVATIONS,
}
_EXCHANGE = frozenset(
    {
        Category.EXCHANGE_CODE,
        Category.HOST_CODE,
        Category.GLOBAL_CODE,
        Category.HOST_HEADER,
        Category.GLOBAL_HEADER,
    }
)
_CONTROL = frozenset({Category.CONTROL_CODE, Category.CONTROL_ID, Category.STACK})


@dataclass(frozen=True)
class ChipMemory:
    """The fullest tile of a chip and its bytes by role; roles without are left out."""

    chip: int
    tile: int
    tile_bytes: int
    bytes_by_role: Mapping[str, int]


def memory_by_role(graph: Graph, simulation: Simulation) -> list[ChipMemory]:
    """The memory of every chip by role."""
    roles = _roles_of_values(graph)
    names_by_chip = _names_by_chip(simulation)
    size = simulation.program.tiles_per_chip
    total = simulation.memory.total_with_gaps
    found: list[ChipMemory] = []
    for chip in range(simulation.program.num_chips):
        part = total.part(chip * size, (chip + 1) * size)
        tile = chip * size + part.peak_tile
        names = names_by_chip.get(chip, [])
        found.append(_on_tile(simulation, roles, names, chip, tile))
    return found


def _names_by_chip(simulation: Simulation) -> Mapping[int, list[str]]:
    """The variables that live at some time and have memory on each chip."""
    program, liveness = simulation.program, simulation.liveness
    found: defaultdict[int, list[str]] = defaultdict(list)
    for name in (*liveness.always_live, *liveness.intervals):
        held = program.variables[name].bytes_by_tile
        for chip in busy_chips(held, program.tiles_per_chip):
            found[chip].append(name)
    return found


def _on_tile(
    simulation: Simulation,
    roles: Mapping[str, str],
    names: Iterable[str],
    chip: int,
    tile: int,
) -> ChipMemory:
    sums: dict[str, int] = dict.fromkeys(ROLES, 0)
    memory = simulation.memory
    held: dict[Category, int] = {}
    for name, vector, category in _live_variables(simulation, names, tile):
        num_bytes = vector[tile]
        role = roles.get(name.partition("@")[0], TEMPORARIES)
        sums[role] += num_bytes
        held[category] = held.get(category, 0) + num_bytes
    # What belongs to no variable is code and state, by its category.
    for category, whole in memory.by_category.items():
        sums[_role_of_code(category)] += whole[tile] - held.get(category, 0)
    with_gaps = memory.total_with_gaps[tile]
    sums[GAPS] += with_gaps - memory.total[tile]
    shown = {role: num_bytes for role, num_bytes in sums.items() if num_bytes}
    return ChipMemory(chip, tile, with_gaps, shown)


def _live_variables(
    simulation: Simulation, names: Iterable[str], tile: int
) -> Iterator[tuple[str, TileVector, Category]]:
    """Those of the variables that have contents when the tile is fullest."""
    step = simulation.memory.peak_step_by_tile[tile]
    intervals, variables = simulation.liveness.intervals, simulation.program.variables
    for name in names:
        lives = intervals.get(name)  # None: always
        if lives is None or any(first <= step <= last for first, last in lives):
            yield name, variables[name].bytes_by_tile, variables[name].category


def _role_of_code(category: Category) -> str:
    if category in _EXCHANGE:
        return EXCHANGE_CODE
    return CONTROL_CODE if category in _CONTROL else VERTEX_CODE


def _roles_of_values(graph: Graph) -> dict[str, str]:
    """The role of every value that owns memory."""
    roles = {v.name: _GIVEN.get(v.role, ACTIVATIONS) for v in graph.values.values()}
    for op in graph.ops:
        is_backward = op.phase is not Phase.FORWARD
        made = GRADIENTS if is_backward and op.kind != "restore" else ""
        made = RECOMPUTED if is_recomputed(op) else made
        if made:
            names = (n for n in op.outputs if graph.root(n) == n)
            roles.update(dict.fromkeys(names, made))
    for op in graph.ops:
        if op.kind == "accumulate":
            roles[graph.root(op.inputs[0])] = ACCUMULATORS
        elif op.kind == "stash":
            roles[graph.root(op.inputs[0])] = STASH
        elif op.phase is Phase.UPDATE and get_op(op.kind).family == "update":
            states = (graph.root(name) for name in op.inputs[2:])
            roles.update(dict.fromkeys(states, STATES))
    return roles
