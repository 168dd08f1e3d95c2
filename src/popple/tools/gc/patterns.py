"""Exchange patterns: messages between the tiles of a chip, moved and checked for real.

In: a pattern of messages and the faults that act on it. Out: the tiles that received
something wrong, and the cycles that the exchange takes on the target. Both come from
the same list of messages: the bytes are moved by it, and the program that is simulated
is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from popple.device.faults import Fault
from popple.program import Exchange, Program, TileVector
from popple.sim import simulate
from popple.target import Target

Tiles = NDArray[np.int64]
Words = NDArray[np.uint32]

WORD_BYTES = 4


@dataclass(frozen=True)
class Pattern:
    """Messages of equal length, one per row of its arrays.

    A message is the `num_words` words at `source_offsets` of a tile's outgoing memory,
    and lands at `destination_offsets` of the receiver's incoming memory. A tile of a
    multicast sends once, however many receive it.
    """

    name: str
    num_tiles: int
    num_words: int
    sources: Tiles
    destinations: Tiles
    source_offsets: Tiles
    destination_offsets: Tiles
    is_multicast: bool = False


@dataclass(frozen=True)
class Outcome:
    """What one pattern did: tiles that received wrong words, and its cost."""

    name: str
    bad_tiles: tuple[int, ...]
    num_bytes: int
    cycles: int
    seconds: float

    @property
    def bytes_per_second(self) -> float:
        """Bytes received by all tiles, over the modelled time."""
        return self.num_bytes / self.seconds


def make_permutations(num_tiles: int, num_words: int) -> Iterator[Pattern]:
    """Each tile sends to one other and receives from one: rotations and shuffles."""
    tiles = np.arange(num_tiles, dtype=np.int64)
    yield _permute("neighbour", np.roll(tiles, 1), num_words)
    yield _permute("opposite", np.roll(tiles, num_tiles // 2), num_words)
    yield _permute("reversed", tiles[::-1], num_words)
    # The same shuffle in every run: a failure can be looked at again.
    shuffled = np.random.default_rng(1472).permutation(tiles)
    yield _permute("shuffled", shuffled, num_words)


def make_all_to_all(num_tiles: int) -> Pattern:
    """Each tile sends a word of its own to every tile, itself included."""
    sources, destinations = np.divmod(
        np.arange(num_tiles * num_tiles, dtype=np.int64), num_tiles
    )
    # Outgoing words lie in the order of who gets them, incoming ones of who sent them.
    return Pattern(
        "all-to-all", num_tiles, 1, sources, destinations, destinations, sources
    )


def make_broadcast(num_tiles: int, source: int, num_words: int) -> Pattern:
    """One tile writes the same words into the memory of all tiles."""
    tiles = np.arange(num_tiles, dtype=np.int64)
    zeros = np.zeros_like(tiles)
    name = f"broadcast from tile {source}"
    return Pattern(
        name, num_tiles, num_words, zeros + source, tiles, zeros, zeros, True
    )


def make_gather(num_tiles: int, destination: int, num_words: int) -> Pattern:
    """Every tile writes into a place of its own in the memory of one tile."""
    tiles = np.arange(num_tiles, dtype=np.int64)
    zeros = np.zeros_like(tiles)
    name = f"gather to tile {destination}"
    places = tiles * num_words
    return Pattern(
        name, num_tiles, num_words, tiles, zeros + destination, zeros, places
    )


def run_pattern(pattern: Pattern, target: Target, faults: Iterable[Fault]) -> Outcome:
    """Move the words of a pattern, check them, and simulate what that takes."""
    received = _move(pattern)
    for fault in faults:
        received[fault.tile] ^= np.uint32(1 << fault.bit)
    simulation = simulate(program_of(pattern), target)
    return Outcome(
        pattern.name,
        find_bad_tiles(pattern, received),
        pattern.sources.size * pattern.num_words * WORD_BYTES,
        simulation.cost.cycles,
        simulation.seconds,
    )


def program_of(pattern: Pattern) -> Program:
    """One exchange with the bytes that each tile of the pattern sends and receives."""
    size, each = pattern.num_tiles, pattern.num_words * WORD_BYTES
    sent = np.bincount(pattern.sources, minlength=size)
    if pattern.is_multicast:
        sent = np.minimum(sent, 1)
    received = np.bincount(pattern.destinations, minlength=size)
    step = Exchange(
        pattern.name,
        TileVector.from_array(sent * each),
        TileVector.from_array(received * each),
        TileVector.from_array(received),
    )
    return Program(pattern.name, 1, size, {}, step)


def find_bad_tiles(pattern: Pattern, received: Words) -> tuple[int, ...]:
    """The tiles on which a word is not the one that its sender marked."""
    places = _places(pattern.destination_offsets, pattern.num_words)
    found = received[pattern.destinations[:, None], places]
    wanted = _mark(pattern)
    is_bad = (found != wanted).any(axis=1)
    return tuple(np.unique(pattern.destinations[is_bad]).tolist())


def _move(pattern: Pattern) -> Words:
    """The incoming memory of all tiles after the messages have arrived."""
    sent = np.zeros((pattern.num_tiles, _width(pattern, sends=True)), np.uint32)
    places = _places(pattern.source_offsets, pattern.num_words)
    sent[pattern.sources[:, None], places] = _mark(pattern)
    received = np.zeros((pattern.num_tiles, _width(pattern, sends=False)), np.uint32)
    goals = _places(pattern.destination_offsets, pattern.num_words)
    received[pattern.destinations[:, None], goals] = sent[
        pattern.sources[:, None], places
    ]
    return received


def _mark(pattern: Pattern) -> Words:
    """The words of each message: different for every sender and place."""
    first = pattern.sources * _width(pattern, sends=True) + pattern.source_offsets
    return _places(first, pattern.num_words).astype(np.uint32)


def _places(offsets: Tiles, num_words: int) -> Tiles:
    return offsets[:, None] + np.arange(num_words, dtype=np.int64)


def _width(pattern: Pattern, *, sends: bool) -> int:
    offsets = pattern.source_offsets if sends else pattern.destination_offsets
    return int(offsets.max()) + pattern.num_words


def _permute(name: str, sources: Tiles, num_words: int) -> Pattern:
    """Tile i receives from `sources[i]`."""
    tiles = np.arange(sources.size, dtype=np.int64)
    zeros = np.zeros_like(tiles)
    return Pattern(name, sources.size, num_words, sources, tiles, zeros, zeros)
