"""Steps of a program: compute sets, exchanges, stream copies, loops, calls; plain data.

    Step = Sequence | Parallel | Repeat | RepeatWhile | If | Switch | Call    control
         | Execute                                                        compute
         | Exchange | GlobalExchange                                      data
         | StreamCopy                                                     host
         | Sync | WriteUndef                                              other

Leaves name the variables they read and write; liveness follows from that. Every
tile vector spans all tiles of all chips of a replica. `op` names the graph op a leaf
came from, if it came from one, so that costs can be summed up by op.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from popple.program.tiles import TileVector
from popple.program.vertices import ComputeSet
from popple.quick import quick


class SyncKind(enum.Enum):
    """How far a barrier reaches."""

    INTERNAL = "Internal"
    EXTERNAL = "External"
    GLOBAL = "Global"


class Direction(enum.Enum):
    """Which way a host stream flows."""

    FROM_HOST = "fromHost"
    TO_HOST = "toHost"


@quick
@dataclass(frozen=True, slots=True)
class Execute:
    """One compute phase."""

    # Variables are named, not held: one variable is used by many steps, and a name
    # keeps steps comparable and printable. The names feed liveness only; the time of a
    # step follows from its vectors.
    compute_set: ComputeSet
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    op: str = ""


@quick
@dataclass(frozen=True, slots=True)
class Exchange:
    """Tiles of one chip send to each other: a sync, then an exchange phase.

    `sent_by_tile` counts a multicast once. `messages_by_tile` are the pieces received,
    each of which costs control instructions beside its payload. `is_shared` says that
    paired tiles receive the same data and share their buses.
    """

    name: str
    sent_by_tile: TileVector
    received_by_tile: TileVector
    messages_by_tile: TileVector | None = None
    is_shared: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    op: str = ""


@quick
@dataclass(frozen=True, slots=True)
class GlobalExchange:
    """Chips send to each other over links, within a replica or between replicas.

    `flows` lists (source chip, destination chip, bytes) of flows that share
    the links; `num_hops` is the longest route in chips; `replicas` greater than 1 says
    that the partners lie in that many replicas (a collective), one in each rack if it
    `is_between_racks`.
    """

    name: str
    flows: tuple[tuple[int, int, int], ...]
    sent_by_tile: TileVector
    received_by_tile: TileVector
    num_hops: int = 1
    replicas: int = 1
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    op: str = ""
    is_between_racks: bool = False


@quick
@dataclass(frozen=True, slots=True)
class StreamCopy:
    """Data between host (or streaming memory) and tiles: begin, mid, end."""

    name: str
    direction: Direction
    bytes_by_tile: TileVector
    is_remote_buffer: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    op: str = ""


@quick
@dataclass(frozen=True, slots=True)
class Sync:
    """A barrier of its own. Exchanges and stream copies bring the one they need."""

    kind: SyncKind = SyncKind.INTERNAL
    op: str = ""


@quick
@dataclass(frozen=True, slots=True)
class WriteUndef:
    """The end of a variable's contents: it is dead until written again."""

    variable: str
    op: str = ""


@quick
@dataclass(frozen=True, slots=True)
class Sequence:
    """Steps one after the other."""

    steps: tuple[Step, ...]
    name: str = ""


@dataclass(frozen=True)
class Parallel:
    """Steps on disjoint chips at the same time; the longest decides.

    Copies with the host may run beside compute on the same chip, on other tiles of it.
    """

    branches: tuple[Step, ...]
    name: str = ""


@dataclass(frozen=True)
class Repeat:
    """A body run a fixed number of times, possibly 0.

    `micro_batches` is how many of them a round works through: by so much the numbers
    of micro-batches in the body grow from one round to the next. The first round
    begins with number `first_micro_batch`.
    """

    count: int
    body: Step
    name: str = ""
    micro_batches: int = 0
    first_micro_batch: int = 0


@dataclass(frozen=True)
class RepeatWhile:
    """Run `condition`, test `predicate`, run `body`, again.

    `expected_count` is how often the body is thought to run.
    """

    condition: Step
    predicate: str
    body: Step
    expected_count: int = 1
    name: str = ""


@dataclass(frozen=True)
class If:
    """One of two branches, as a scalar variable says; costs the dearer one."""

    predicate: str
    then: Step
    otherwise: Step
    name: str = ""


@dataclass(frozen=True)
class Switch:
    """One of several cases, as an integer variable says; costs the dearest one."""

    control: str
    cases: tuple[tuple[int, Step], ...]
    default: Step
    name: str = ""


@quick
@dataclass(frozen=True, slots=True)
class Call:
    """A function of the program, whose code exists once.

    `label`, `micro_batch` and `stage` mark the call on a timeline; in a loop over
    micro-batches the number is that of the first round.
    """

    function: str
    label: str = ""
    stage: int = -1
    micro_batch: int = -1


Leaf: TypeAlias = Execute | Exchange | GlobalExchange | StreamCopy | Sync | WriteUndef
Control: TypeAlias = Sequence | Parallel | Repeat | RepeatWhile | If | Switch | Call
Step: TypeAlias = Leaf | Control
