"""Liveness by data flow over the tree of steps: the live variables of every step.

Backwards: the next use of each variable. Forwards: its last write. Both follow from the
effects of the parts of the tree, so loops need no fixed-point iteration and functions
are analysed once: their effect stands for them wherever they are called, and what holds
at any of the calls holds in their body.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from popple.program import (
    MAIN,
    Call,
    Control,
    If,
    Numbering,
    Parallel,
    Program,
    Repeat,
    RepeatWhile,
    Switch,
    WriteUndef,
    accesses_of,
    call_order,
    child_ids,
    root_ids,
)
from popple.program import Sequence as StepSequence
from popple.sim.effect import NEVER_USED, Effect, NextUse, leaf_effect
from popple.units import ceil_div

Uses: TypeAlias = Mapping[int, Sequence[int]]
"""Step number -> [variables it reads, variables it writes or ends], as sets"""


def find_uses(names: Sequence[str], steps: Numbering, group_size: int) -> list[Uses]:
    """The uses of each group of `group_size` names; bit i is the group's name i."""
    places = {name: divmod(index, group_size) for index, name in enumerate(names)}
    num_groups = ceil_div(len(names), group_size)
    groups: list[dict[int, list[int]]] = [{} for _ in range(num_groups)]
    for row in steps:
        for which, used in enumerate(accesses_of(row.step)):
            for group, bit in (places[name] for name in used if name in places):
                groups[group].setdefault(row.id, [0, 0])[which] |= 1 << bit
    return list(groups)


class StepTree:
    """What the analyses of all groups of variables know about a program's steps."""

    def __init__(self, program: Program, steps: Numbering) -> None:
        self.steps = steps
        self.roots = root_ids(steps)
        self.order = (*call_order(program.functions), MAIN)
        """Callees before their callers"""
        self.callers: dict[int, list[int]] = defaultdict(list)
        """Root of a function -> the calls of it"""
        self.is_plain = [True] * len(steps)
        """Whether a step and all inside it are placed where it is: no call is"""
        for row in reversed(steps):
            step = row.step
            if isinstance(step, Call):
                self.callers[self.roots[step.function]].append(row.id)
                self.is_plain[row.id] = False
            elif isinstance(step, Repeat) and not step.count:
                self.is_plain[row.id] = False
            if row.parent_id >= 0 and not self.is_plain[row.id]:
                self.is_plain[row.parent_id] = False
        self.calling: dict[int, list[int]] = defaultdict(list)
        """Step -> the steps directly inside it that are not plain"""
        for row in steps:
            if row.parent_id >= 0 and not self.is_plain[row.id]:
                self.calling[row.parent_id].append(row.id)

    def around(self, step_ids: Iterable[int]) -> list[int]:
        """These steps and all that hold or call them, inner and called ones first."""
        found: set[int] = set()
        waiting = list(step_ids)
        while waiting:
            step_id = waiting.pop()
            if step_id in found:
                continue
            found.add(step_id)
            parent = self.steps[step_id].parent_id
            waiting += [parent] if parent >= 0 else self.callers[step_id]
        # Inside a root from the last number to the first, which visits children before
        # their parents.
        ids, ordered = sorted(found), list[int]()
        for name in self.order:
            root = self.steps[self.roots[name]]
            inside = ids[bisect_left(ids, root.id) : bisect_left(ids, root.end_id)]
            ordered += reversed(inside)
        return ordered


def live_sets(uses: Uses, num_names: int, tree: StepTree) -> list[int]:
    """For every step the set of variables of a group that are live in it.

    A leaf holds what it uses and what lives behind it; a control step what lives when
    it begins. Steps that are never reached hold nothing.
    """
    flow = _Flow(uses, num_names, tree)
    # Callers first: a body can be placed only when all calls of it are known.
    for name in reversed(tree.order):
        flow.place_root(name)
    return flow.live


class _Flow:
    """The analysis for one group of variables, callers placed before callees."""

    def __init__(self, uses: Uses, num_names: int, tree: StepTree) -> None:
        self._uses = uses
        self._tree = tree
        self._steps = tree.steps
        self._roots = tree.roots
        self._every = (1 << num_names) - 1
        self._nothing = Effect(self._every, 0, 0, 0)
        # Most steps touch no variable of the group, and share one object that says so.
        self._effects = [self._nothing] * len(self._steps)
        around = tree.around(uses)
        self._touching: dict[int, list[int]] = defaultdict(list)
        """Step -> the steps directly inside it that touch a variable of the group"""
        for step_id in sorted(around):
            self._touching[self._steps[step_id].parent_id].append(step_id)
        for step_id in around:
            self._effects[step_id] = self._effect_of(step_id)
        # What the callers of a function leave behind and want next.
        self._entries: dict[str, tuple[int, NextUse]] = {MAIN: (0, NEVER_USED)}
        self.live = [0] * len(self._steps)

    def place_root(self, name: str) -> None:
        """Find the live sets of main or of a function, if it is ever called."""
        if (entry := self._entries.get(name)) is not None:
            self._place(self._roots[name], *entry)

    def _effect_of(self, step_id: int) -> Effect:
        step = self._steps[step_id].step
        if not isinstance(step, Control):
            return self._own_effect(step_id)
        if isinstance(step, Call):
            return self._effects[self._roots[step.function]]
        if isinstance(step, StepSequence | Parallel):
            touching = self._touching.get(step_id, ())
            return self._chain([self._effects[child] for child in touching])
        inner = [self._effects[child] for child in child_ids(self._steps, step_id)]
        if isinstance(step, Repeat):
            return inner[0] if step.count else self._nothing
        # The condition runs once more than the body. Two rounds need no second term: an
        # effect followed by itself has the same first and last uses.
        if isinstance(step, RepeatWhile):
            test, body = inner[0].then(self._own_effect(step_id)), inner[1]
            return test.then(body.then(test).either(self._nothing))
        return self._own_effect(step_id).then(self._any(inner))

    def _own_effect(self, step_id: int) -> Effect:
        if step_id not in self._uses:
            return self._nothing
        reads, writes = self._uses[step_id]
        if isinstance(self._steps[step_id].step, WriteUndef):
            return leaf_effect(self._every, 0, 0, ended=writes)
        return leaf_effect(self._every, reads, writes)

    def _chain(self, parts: Sequence[Effect]) -> Effect:
        whole = self._nothing
        for part in parts:
            if part is not self._nothing:
                whole = whole.then(part)
        return whole

    def _any(self, parts: Sequence[Effect]) -> Effect:
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.either(part)
        return whole

    def _place(self, step_id: int, written: int, after: NextUse) -> None:
        """Find the live sets of a step and all steps inside it.

        `written` are the variables last written when it begins, `after` the next use
        of variables when it has ended.
        """
        step = self._steps[step_id].step
        effect = self._effects[step_id]
        if effect is self._nothing and self._tree.is_plain[step_id]:
            end_id = self._steps[step_id].end_id
            self.live[step_id:end_id] = [after.live(written)] * (end_id - step_id)
            return
        if not isinstance(step, Control):
            # What a step writes takes memory while it runs, even if nobody reads it.
            used = effect.first_read | effect.first_write
            self.live[step_id] = used | after.live(effect.written_after(written))
            return
        self.live[step_id] = effect.next_before(after).live(written)
        # Branches of Parallel run on different chips (`verify` sees to it), so that
        # placing them one after the other moves no chip's peak.
        if isinstance(step, StepSequence | Parallel):
            self._place_chain(step_id, written, after)
        elif isinstance(step, Repeat):
            self._place_repeat(step_id + 1, step.count, written, after)
        elif isinstance(step, RepeatWhile):
            inner = tuple(child_ids(self._steps, step_id))
            self._place_while(step_id, inner, written, after)
        elif isinstance(step, If | Switch):
            own = self._own_effect(step_id)
            self.live[step_id] |= own.first_read
            for arm in child_ids(self._steps, step_id):
                self._place(arm, own.written_after(written), after)
        else:
            # A call: its callers are merged, and the body is placed when its turn
            # comes.
            known, wanted = self._entries.get(step.function, (0, NEVER_USED))
            entry = (known | written, wanted.either(after))
            self._entries[step.function] = entry

    def _place_chain(self, parent: int, written: int, after: NextUse) -> None:
        """Place steps one after the other, those between them in one go."""
        inner = self._touching.get(parent, [])
        if calling := self._tree.calling.get(parent):
            inner = sorted({*inner, *calling})
        before: list[int] = []
        for step_id in inner:
            before.append(written)
            if (effect := self._effects[step_id]) is not self._nothing:
                written = effect.written_after(written)
        end = self._steps[parent].end_id
        for step_id, known in zip(reversed(inner), reversed(before), strict=True):
            self._fill(self._steps[step_id].end_id, end, after.live(written))
            self._place(step_id, known, after)
            if (effect := self._effects[step_id]) is not self._nothing:
                after = effect.next_before(after)
            written, end = known, step_id
        self._fill(parent + 1, end, after.live(written))

    def _fill(self, first: int, end: int, live: int) -> None:
        """The same live set for steps that touch no variable of the group."""
        if live and first < end:
            self.live[first:end] = [live] * (end - first)

    def _place_repeat(
        self, body: int, count: int, written: int, after: NextUse
    ) -> None:
        if count == 0:
            return
        effect = self._effects[body]
        if count > 1:  # what one round leaves, and what the next one wants
            written |= effect.last_write
            after = after.either(NextUse(effect.first_read, effect.first_write))
        self._place(body, written, after)

    def _place_while(
        self, step_id: int, inner: Sequence[int], written: int, after: NextUse
    ) -> None:
        condition, body = (self._effects[part] for part in inner)
        test = condition.then(self._own_effect(step_id))
        again = body.then(test)
        written |= test.then(body).last_write
        decided = after.either(NextUse(again.first_read, again.first_write))
        tested = self._own_effect(step_id).next_before(decided)
        self._place(inner[0], written, tested)
        self._place(inner[1], test.written_after(written), test.next_before(decided))
