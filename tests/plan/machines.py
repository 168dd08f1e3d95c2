"""Targets and requests that plan tests share."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from popple.graph import Signature
from popple.plan import OpPlan, PlanRequest, TileMapping, get_rule
from popple.plan.mapping import linear_mapping
from popple.plan.opplan import Compute, HostCopy, LinkCopy, Loop, Move, PlanStep
from popple.program import TileVector
from popple.target import Target, load_target


@cache
def bow(num_chips: int = 1) -> Target:
    """A Bow, or several of a pod."""
    return load_target("bow-pod16" if num_chips > 1 else "bow", num_chips)


@cache
def bow_with_tiles(num_tiles: int) -> Target:
    """A Bow of another size."""
    system = bow().system
    chip = replace(system.chip, num_tiles=num_tiles)
    return Target(replace(system, chip=chip))


def linear_inputs(signature: Signature, target: Target) -> tuple[TileMapping, ...]:
    """Every input in the default mapping."""
    return tuple(linear_mapping(tensor, target.chip) for tensor in signature.inputs)


def plan(
    signature: Signature,
    inputs: tuple[TileMapping | None, ...] | None = None,
    target: Target | None = None,
) -> OpPlan:
    """The plan of an op, with linear inputs unless told otherwise."""
    machine = target or bow()
    given = linear_inputs(signature, machine) if inputs is None else inputs
    return get_rule(signature.kind)(PlanRequest(signature, given, machine))


def busy(steps: tuple[PlanStep, ...]) -> int:
    """Cycles of the compute phases and bytes of all traffic: more than 0 is work."""
    return sum(_busy(step) for step in steps)


def _busy(step: PlanStep) -> int:
    if isinstance(step, Compute):
        return sum(group.cycles_by_tile.maximum for group in step.vertices)
    if isinstance(step, Move):
        return step.received_by_tile.total
    if isinstance(step, Loop):
        return step.count * busy(step.steps)
    return step.bytes_by_tile.total


def vectors(steps: tuple[PlanStep, ...]) -> list[TileVector]:
    """All tile vectors of a plan's steps."""
    found: list[TileVector | None] = []
    for step in steps:
        if isinstance(step, Compute):
            for group in step.vertices:
                found += [group.count_by_tile, group.cycles_by_tile]
                found.append(group.flops_by_tile)
        elif isinstance(step, Move):
            found += [step.sent_by_tile, step.received_by_tile, step.messages_by_tile]
        elif isinstance(step, HostCopy | LinkCopy):
            found.append(step.bytes_by_tile)
        else:
            found += vectors(step.steps)
    return [vector for vector in found if vector is not None]
