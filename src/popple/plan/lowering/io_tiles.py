"""I/O tiles: host traffic that goes on while the other tiles compute.

Tiles of every chip set aside for traffic hold what has arrived for the next
micro-batch and what leaves of the last one; exchanges join them with the tiles that
compute. Only the first arrival and the last departure of a loop are waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from popple.plan.lowering.structure import repeat, sequence
from popple.plan.options import IoOptions, Overlap
from popple.program import (
    Direction,
    Exchange,
    Parallel,
    Repeat,
    Step,
    StreamCopy,
    TileVector,
    Variable,
)


@dataclass(frozen=True)
class Traffic:
    """Host traffic of a micro-batch: around its compute, and beside that of others."""

    before: tuple[Step, ...]
    after: tuple[Step, ...]
    arrivals: tuple[Step, ...] = ()
    departures: tuple[Step, ...] = ()

    def around(self, compute: Iterable[Step]) -> Step:
        """A micro-batch with the traffic it waits for."""
        return sequence([*self.before, *compute, *self.after], "micro_batch")

    def beside(self, compute: Step) -> Step:
        """Compute while the next micro-batch arrives and the last one leaves."""
        steps = [*self.arrivals, *self.departures]
        return Parallel((compute, sequence(steps, "traffic")), "overlap")

    def last_of(self, count: int, micro_batch: Step) -> list[Step]:
        """`count` micro-batches, none arriving beside the last one."""
        if count == 1 or not (self.arrivals or self.departures):
            return [repeat(count, micro_batch, "accumulation", 1)]
        return [
            repeat(count - 1, self.beside(micro_batch), "accumulation", 1),
            Repeat(1, micro_batch, "last", 1, first_micro_batch=count - 1),
        ]


class IoTiles:
    """The last tiles of every chip, and the buffers they hold."""

    def __init__(
        self, options: IoOptions, tiles_per_chip: int, variables: dict[str, Variable]
    ) -> None:
        self._options = options
        self._tiles_per_chip = tiles_per_chip
        self._variables = variables

    def traffic(
        self, inputs: Sequence[StreamCopy], outputs: Sequence[StreamCopy]
    ) -> Traffic:
        """The traffic of a micro-batch with these streams."""
        if self._options.overlap is Overlap.NONE:
            return Traffic(tuple(inputs), tuple(outputs))
        arriving = [self._through_buffer(step) for step in inputs]
        leaving = [self._through_buffer(step) for step in outputs]
        loads, spreads = _columns(arriving)
        stores, gathers = _columns(leaving)
        return Traffic(spreads, gathers, loads, stores)

    def loops(
        self,
        counts: tuple[int, int],
        traffic: Traffic,
        micro_batch: Step,
        update: list[Step],
    ) -> Step:
        """Iterations of micro-batches, each iteration with an update.

        Traffic of iterations that follow runs beside compute too if asked for.
        """
        num_iterations, num_micro_batches = counts
        inner = traffic.last_of(num_micro_batches, micro_batch)
        arrivals, departures = traffic.arrivals, traffic.departures
        if self._options.overlap is not Overlap.ITERATIONS:
            steps = [*arrivals, *inner, *departures, *update]
            whole = sequence(steps, "iteration")
            return repeat(num_iterations, whole, "iterations", num_micro_batches)
        # In all but the last iteration every micro-batch has another one to run beside.
        beside = traffic.beside(micro_batch)
        whole = repeat(num_micro_batches, beside, "accumulation", 1)
        iteration = sequence([whole, *update], "iteration")
        last = sequence([*inner, *update, *departures], "iteration")
        if num_iterations == 1:
            return sequence([*arrivals, *last.steps])
        each, rounds = num_micro_batches, num_iterations - 1
        before = repeat(rounds, iteration, "iterations", each)
        after = Repeat(1, last, "last", each, first_micro_batch=rounds * each)
        return sequence([*arrivals, before, after])

    def _through_buffer(self, step: StreamCopy) -> tuple[StreamCopy, Exchange]:
        """The copy between host and I/O tiles, and the exchange with the others."""
        on_io_tiles = self._spread(step.bytes_by_tile)
        buffer = f"{step.name}/buffer"
        # Beside compute anything may run, so a buffer shares memory with nothing. One
        # is enough: the exchange empties it before the next batch is on its way. With
        # two, 90 images for ResNet-50 would not lie on 32 tiles, as they did
        # (graphcore/PopRT examples/resnet50).
        self._variables[buffer] = Variable(buffer, on_io_tiles, is_always_live=True)
        is_arrival = step.direction is Direction.FROM_HOST
        sides = (on_io_tiles, step.bytes_by_tile)
        sent, received = sides if is_arrival else sides[::-1]
        own = (buffer,)
        copy = StreamCopy(
            step.name,
            step.direction,
            on_io_tiles,
            reads=() if is_arrival else own,
            writes=own if is_arrival else (),
        )
        exchange = Exchange(
            f"{step.name}/exchange",
            sent,
            received,
            reads=own if is_arrival else step.reads,
            writes=step.writes if is_arrival else own,
        )
        return copy, exchange

    def _spread(self, by_tile: TileVector) -> TileVector:
        """As many bytes evenly on the I/O tiles of the chip that has them."""
        # A stream belongs to one chip: that of any tile that has some of it.
        chip = by_tile.peak_tile // self._tiles_per_chip
        size = self._options.num_tiles
        even = TileVector.spread(by_tile.total, size, size)
        return even.shifted((chip + 1) * self._tiles_per_chip - size, len(by_tile))


def _columns(
    pairs: Sequence[tuple[StreamCopy, Exchange]],
) -> tuple[tuple[StreamCopy, ...], tuple[Exchange, ...]]:
    return tuple(copy for copy, _ in pairs), tuple(move for _, move in pairs)
