"""Effect: reads and writes of a part of a program as composable sets, for liveness.

A set of variables is an integer whose bit i stands for variable i, so that thousands of
variables are handled by one operation. Effects compose: `first.then(second)` for parts
that follow one another, `one.either(other)` for parts of which one runs. Liveness needs
to know nothing else about steps.
"""

from __future__ import annotations

from typing import NamedTuple


class Effect(NamedTuple):
    """What running a part may do, variable by variable.

    kept         may be left alone
    first_read   may be read before anything else happens to it
    first_write  may be written before anything else happens to it
    last_write   may have a write as the last thing that happens to it
    """

    kept: int
    first_read: int
    first_write: int
    last_write: int

    def then(self, after: Effect) -> Effect:
        """This part, then another."""
        return Effect(
            self.kept & after.kept,
            self.first_read | (self.kept & after.first_read),
            self.first_write | (self.kept & after.first_write),
            after.last_write | (after.kept & self.last_write),
        )

    def either(self, other: Effect) -> Effect:
        """This part or another."""
        return Effect(
            self.kept | other.kept,
            self.first_read | other.first_read,
            self.first_write | other.first_write,
            self.last_write | other.last_write,
        )

    def written_after(self, written: int) -> int:
        """The variables whose last use is a write, after this part.

        `written` is the same set before this part.
        """
        return self.last_write | (written & self.kept)

    def next_before(self, after: NextUse) -> NextUse:
        """The next use of variables at the beginning of this part.

        `after` is their next use at its end.
        """
        return NextUse(
            self.first_read | (after.read & self.kept),
            self.first_write | (after.write & self.kept),
        )


class NextUse(NamedTuple):
    """Variables whose next use may be a read, and those where it may be a write."""

    read: int
    write: int

    def either(self, other: NextUse) -> NextUse:
        """What may come next if either may come next."""
        return NextUse(self.read | other.read, self.write | other.write)

    def live(self, written: int) -> int:
        """Variables with contents here, if `written` were last written, not read.

        A variable lives if it is read next, or if it is written in several parts: a
        write that follows a write continues the same contents, while a write that
        follows a read begins new ones.
        """
        return self.read | (self.write & written)


NEVER_USED = NextUse(0, 0)


def leaf_effect(every: int, reads: int, writes: int, ended: int = 0) -> Effect:
    """A step that reads, then writes, or that ends the contents of variables."""
    # A step that reads what it writes updates in place: the contents that it needs are
    # those from before, so its first use is the read. Ended variables are neither kept
    # nor used, which stops liveness on both sides.
    kept = every & ~(reads | writes | ended)
    return Effect(kept, reads, writes & ~reads, writes)
