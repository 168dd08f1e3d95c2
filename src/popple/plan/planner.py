"""Planner: plans ops one at a time and remembers what it planned.

In: a signature and where its inputs lie. Out: an OpPlan. Equal questions are answered
once, so a stack of identical layers costs as much planning as one layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from popple.errors import PlanError
from popple.graph import Notes, Signature
from popple.plan.opplan import OpPlan, PlanRequest, Share, TileMapping
from popple.plan.options import PlanOptions
from popple.plan.registry import get_rule
from popple.target import Target

GENERIC = "generic"

Inputs = tuple[TileMapping | None, ...]


def _options_for(notes: Notes, options: PlanOptions) -> PlanOptions:
    """The options of all ops, as changed by what is noted on one."""
    if (memory := notes.memory_proportion) is not None:
        options = replace(options, memory_proportion=memory)
    if notes.partials is not None:
        options = replace(options, partials=notes.partials.value)
    return options


def _with_wide_loads(target: Target) -> Target:
    """The target whose units load weights from two memory elements at once.

    As PopLibs' use128BitConvUnitLoad has it (graphcore/poplibs, ConvModel.cpp:292).
    """
    chip = target.chip
    rate = chip.conv_unit_max_coeff_load_bytes_per_cycle
    chip = replace(chip, conv_unit_coeff_load_bytes_per_cycle=rate)
    return replace(target, system=replace(target.system, chip=chip))


Plans = dict[tuple[Signature, Inputs, Share | None], OpPlan]


class PlanStore:
    """Plans of several programs: what one needed, the next need not plan again."""

    def __init__(self) -> None:
        self._known: dict[tuple[Target, PlanOptions], Plans] = {}

    def of(self, target: Target, options: PlanOptions) -> Plans:
        """The plans for a target and options, to be used and added to."""
        return self._known.setdefault((target, options), {})


class Planner:
    """The rules applied to one target with one set of options.

    Plans are kept in a `store` that several planners share, if there is one.
    """

    def __init__(
        self,
        target: Target,
        options: PlanOptions | None = None,
        store: PlanStore | None = None,
    ) -> None:
        self.target = target
        self._wide_target = _with_wide_loads(target)
        self.options = options or PlanOptions()
        self.num_hits = 0
        self._plans = (store or PlanStore()).of(target, self.options)
        self._generic_ops: Counter[str] = Counter()

    @property
    def num_plans(self) -> int:
        """Distinct plans made."""
        return len(self._plans)

    @property
    def generic_ops(self) -> Mapping[str, int]:
        """How often each framework op was planned by the generic rule."""
        return dict(self._generic_ops)

    def count_generic(self, signature: Signature) -> None:
        """Note one use of an op that only the generic rule can plan."""
        self._generic_ops[str(signature.attr("framework_op", signature.kind))] += 1

    def request(
        self, signature: Signature, inputs: Inputs, share: Share | None = None
    ) -> PlanRequest:
        """What a rule is asked about an op, its own wishes included."""
        options = _options_for(signature.notes, self.options)
        is_wide = signature.kind.partition("_")[0] in options.wide_loads
        target = self._wide_target if is_wide else self.target
        return PlanRequest(signature, inputs, target, options, share)

    def plan(
        self, signature: Signature, inputs: Inputs, share: Share | None = None
    ) -> OpPlan:
        """The plan of an op whose inputs lie as given, on all tiles or on its share."""
        # Options and target are the same for all ops of a planner, and what an op asks
        # for itself is in its signature.
        key = (signature, inputs, share)
        if (known := self._plans.get(key)) is not None:
            self.num_hits += 1
            return known
        request = self.request(signature, inputs, share)
        plan = get_rule(signature.kind)(request)
        # Caught here, where the rule is known: later passes pair results and mappings.
        if len(plan.outputs) != len(signature.outputs):
            raise PlanError(
                f"the rule {plan.rule!r} mapped {len(plan.outputs)} of "
                f"{len(signature.outputs)} results of {signature}."
            )
        self._plans[key] = plan
        return plan
