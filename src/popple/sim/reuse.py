"""Reuse of exchange code: exchanges that run the instructions of earlier ones.

In: exchanges in the order of the program, and the liveness of variables. Out: the
instructions that each exchange adds to every tile.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from popple.program import Exchange, Program, TileVector, add_all, combine
from popple.sim.liveness import Interval, is_always_live
from popple.sim.phases import CONTROLS_PER_MESSAGE, messages_by_tile
from popple.units import ceil_div

# Exchange code, in instructions: one to enter, one per 64 words sent, two per message
# received (12 to 16 B for one message, 268 to 272 B for 32 messages and one word sent).
_ENTER_INSTRUCTIONS = 1
_WORDS_PER_SEND = 64
_WORD_BYTES = 4

_Pattern: TypeAlias = tuple[TileVector, TileVector, TileVector | None, bool]
"""Bytes sent and received, messages received, and whether pairs share their buses"""


class ExchangeReuse:
    """The exchanges whose code stands already; equal code is reused.

    The compiler reuses exchange code (its option `opt.enableInternalExchangeReuse`), if
    addresses agree. Those of variables that live at the same time cannot: weights, and
    activations that wait for a backward pass. Other variables of equal ops get equal
    addresses layer after layer: in a genuine profile of 24 equal layers that share no
    functions, every layer but the first has a third of the first's code.
    """

    def __init__(
        self, program: Program, intervals: Mapping[str, Sequence[Interval]]
    ) -> None:
        self._program = program
        self._always = frozenset(
            name for name, each in program.variables.items() if is_always_live(each)
        )
        self._intervals = intervals
        self._standing: dict[_Pattern, list[Exchange]] = defaultdict(list)

    def add(self, step: Exchange) -> TileVector:
        """Instructions that an exchange adds to every tile."""
        code, standing = exchange_instructions(step), self._standing[_pattern(step)]
        elsewhere: list[str] | None = None
        # The best of all earlier exchanges of this pattern: full reuse ends the search,
        # otherwise the one from which the fewest variables differ leaves least code to
        # add.
        for other in standing:
            # No further than to as many as are known already.
            limit = math.inf if elsewhere is None else len(elsewhere)
            found = self._elsewhere(step, other, limit)
            if not found:
                return code.scaled(0)
            if len(found) < limit:
                elsewhere = found
        standing.append(step)
        return code if elsewhere is None else self._where(code, elsewhere)

    def _elsewhere(self, step: Exchange, other: Exchange, limit: float) -> list[str]:
        """The variables that have another address than those of the other exchange.

        No more than `limit` of them.
        """
        found: list[str] = []
        for mine, its in ((step.reads, other.reads), (step.writes, other.writes)):
            # By position: steps of one rule name their variables in one order. Steps of
            # different rules may share a pattern and differ in number.
            for name, counterpart in zip(mine, its, strict=False):
                if name != counterpart and self._live_together(name, counterpart):
                    found.append(name)
                    if len(found) >= limit:
                        return found
        return found

    def _live_together(self, name: str, other: str) -> bool:
        if name in self._always or other in self._always:
            return True
        theirs = self._intervals.get(other, ())
        for first, last in self._intervals.get(name, ()):
            for start, end in theirs:
                if first <= end and start <= last:
                    return True
        return False

    def _where(self, code: TileVector, names: Sequence[str]) -> TileVector:
        """The code of the tiles that hold some of the variables."""
        variables = self._program.variables
        held = add_all((variables[name].bytes_by_tile for name in names), len(code))
        return combine(lambda each: each[0] if each[1] else 0, [code, held])


def _pattern(step: Exchange) -> _Pattern:
    messages = step.messages_by_tile
    return step.sent_by_tile, step.received_by_tile, messages, step.is_shared


def exchange_instructions(step: Exchange) -> TileVector:
    """Instructions of an exchange phase on every tile that takes part in it."""
    messages = messages_by_tile(step)
    return _instructions(step.sent_by_tile, step.received_by_tile, messages)


# Repeated layers exchange the same. The limit bounds memory.
@lru_cache(maxsize=16384)
def _instructions(
    sent_by_tile: TileVector, received_by_tile: TileVector, messages: TileVector
) -> TileVector:
    def instructions(values: Sequence[int]) -> int:
        sent, received, num_messages = values
        if not sent and not received:
            return 0
        sends = ceil_div(sent, _WORD_BYTES * _WORDS_PER_SEND)
        return _ENTER_INSTRUCTIONS + sends + num_messages * CONTROLS_PER_MESSAGE

    return combine(instructions, [sent_by_tile, received_by_tile, messages])
