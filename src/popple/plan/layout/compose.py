"""Views of views: index maps in a row, folded into one where their radices align.

In: the digits of an outer view, which count elements of an inner one. Out: one `View`
if no outer digit makes inner digits carry, else both in a normal form. For that the
inner digits are cut into blocks that the outer view moves independently of each other.
Blocks of one digit fold; the rest is trimmed to what is read and sorted, so that a
slice before a reshape is the same as one after it.

Equal maps have one form if they fold. If they do not, some coincidences have several:
unaligned transpositions of a reshaped value may commute, as perfect shuffles do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from popple.plan.layout.views import Digit, Step, View, strides_of

# Views of at most so many elements are evaluated element by element to see whether
# they are affine by chance, as two elements always are.
_MAX_EVALUATED = 512

_Place = tuple[int, ...]


@dataclass(frozen=True)
class _Move:
    """An outer digit: its place among all, its values, and the inner stride."""

    place: _Place
    size: int
    stride: int


@dataclass(frozen=True)
class _Block:
    """Inner digits and the outer ones that move them, from inner index `start` on.

    `levels` are (size, stride in the source), outermost first. They count in the inner
    index what dimensions of these sizes count in flat order.
    """

    levels: tuple[Digit, ...]
    moves: tuple[_Move, ...]
    start: int

    @property
    def weights(self) -> tuple[int, ...]:
        """What each inner digit counts in the inner index."""
        return strides_of(tuple(size for size, _ in self.levels))

    @property
    def size(self) -> int:
        """Values of the inner index."""
        return math.prod(size for size, _ in self.levels)

    @property
    def last(self) -> int:
        """The greatest inner index read."""
        return self.start + _reach(self.moves)


@dataclass
class _Result:
    """What blocks came to: folded moves, blocks that do not fold, a constant."""

    folded: list[_Move] = field(default_factory=list[_Move])
    kept: list[_Block] = field(default_factory=list[_Block])
    offset: int = 0


def append_view(steps: tuple[Step, ...], view: Step) -> tuple[Step, ...]:
    """Views in a row with one more at the end, in as few steps as they fold into."""
    if isinstance(view, View) and view.is_identity:
        return steps
    *before, last = steps or (None,)
    if not isinstance(last, View) or not isinstance(view, View):
        return *steps, view
    joined = compose(last, view)
    if len(joined) == 1:
        return append_view(tuple(before), joined[0])
    inner = append_view(tuple(before), joined[0])
    if len(inner) <= len(before):
        # The inner one folded with those before it: what follows may fold now.
        return append_view(inner, joined[1])
    return _evaluated((*before, *joined))


def _evaluated(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Few elements as one view if their indices turn out to be affine."""
    known = [s for s in steps if isinstance(s, View) and s.offset is not None]
    count = known[-1].num_elements if known else 0
    if len(known) < len(steps) or count > _MAX_EVALUATED:
        return steps
    indices = list(range(count))
    for view in reversed(known):
        indices = [view.index_of(index) for index in indices]
    digits = _find_digits(indices)
    if digits is None:
        return steps
    return (View.of(known[0].source_size, digits, indices[0]),)


def _find_digits(indices: Sequence[int]) -> list[Digit] | None:
    """The digits whose map gives these indices, outermost first, if there are any."""
    if len(indices) == 1:
        return []
    stride = indices[1] - indices[0]
    if stride < 0:  # no slice or permutation turns elements round
        return None
    run = 1
    while run < len(indices) and indices[run] == indices[0] + run * stride:
        run += 1
    starts = indices[::run]
    expected = [start + i * stride for start in starts for i in range(run)]
    outer = _find_digits(starts) if expected == list(indices) else None
    return None if outer is None else [*outer, (run, stride)]


def compose(first: View, second: View) -> tuple[View, ...]:
    """`second`, a view of the view `first`: one view if that can be, else two."""
    if second.source_size != first.num_elements:
        # A value laid out like another one of another size.
        return first, second
    if not second.num_elements:
        return (View.of(first.source_size, [(0, 0)], 0),)
    digits = enumerate(second.digits)
    moves = [_Move((place,), size, stride) for place, (size, stride) in digits]
    still = [move for move in moves if not move.stride]
    moving = tuple(move for move in moves if move.stride)
    result = _Result(still, offset=first.offset or 0)
    _resolve(_Block(first.digits, moving, second.offset or 0), result)
    joined = _joined(first.source_size, result)
    if first.offset is None or second.offset is None:
        return tuple(replace(view, offset=None) for view in joined)
    return joined


def _resolve(block: _Block, result: _Result) -> None:
    """Cut a block into independent ones and fold those of one digit."""
    if len(block.levels) <= 1:
        stride = block.levels[0][1] if block.levels else 0
        result.offset += block.start * stride
        result.folded += [replace(m, stride=m.stride * stride) for m in block.moves]
    elif (parts := _find_parts(block)) is not None:
        for part in parts:
            _resolve(part, result)
    elif (smaller := _trimmed(block, result)) != block:
        _resolve(smaller, result)
    else:
        result.kept.append(block)


def _reach(moves: Iterable[_Move]) -> int:
    """How far moves go together."""
    return sum((move.size - 1) * move.stride for move in moves)


def _find_parts(block: _Block) -> tuple[_Block, _Block] | None:
    """The block cut in two that no move and no carry joins, if there is such a cut."""
    # Between two inner digits first: aligned radices need no other cuts.
    inside = (m.stride * count for m in block.moves for count in _divisors(m.size))
    for weight in itertools.chain(block.weights[:-1], inside):
        if (parts := _parts_at(block, weight)) is not None:
            return parts
    return None


def _divisors(size: int) -> list[int]:
    small = [n for n in range(1, math.isqrt(size) + 1) if size % n == 0]
    return sorted({*small, *(size // n for n in small)})


def _parts_at(block: _Block, weight: int) -> tuple[_Block, _Block] | None:
    """What lies above and below a weight, if nothing crosses it."""
    levels = _levels_at(block, weight)
    moves = [_moves_at(move, weight) for move in block.moves]
    if levels is None or None in moves:
        return None
    cut = [move for parts in moves for move in parts or ()]
    lower = tuple(move for move in cut if move.stride < weight)
    upper = tuple(
        replace(move, stride=move.stride // weight)
        for move in cut
        if move.stride >= weight
    )
    above, start = divmod(block.start, weight)
    if start + _reach(lower) >= weight:
        return None
    return _Block(levels[0], upper, above), _Block(levels[1], lower, start)


def _levels_at(
    block: _Block, weight: int
) -> tuple[tuple[Digit, ...], tuple[Digit, ...]] | None:
    """Inner digits above and below a weight, one of them cut if it can be."""
    position = next(i for i, own in enumerate(block.weights) if own <= weight)
    size, stride = block.levels[position]
    count, rest = divmod(weight, block.weights[position])
    # The outermost digit never wraps, so parts of it need not be even.
    if rest or weight == 1 or count >= size or (position and size % count):
        return None
    outer, inner = block.levels[:position], block.levels[position + 1 :]
    if count == 1:
        return (*outer, (size, stride)), inner
    above = -(-size // count), stride * count
    return (*outer, above), ((count, stride), *inner)


def _moves_at(move: _Move, weight: int) -> tuple[_Move, ...] | None:
    """A move above or below a weight, or cut there; None if it can only cross it."""
    if move.stride % weight == 0 or _reach([move]) < weight:
        return (move,)
    count, rest = divmod(weight, move.stride)
    if rest or not count or move.size % count:
        return None
    outer = _Move((*move.place, 0), move.size // count, weight)
    return outer, _Move((*move.place, 1), count, move.stride)


def _trimmed(block: _Block, result: _Result) -> _Block:
    """The block without values that its outermost or innermost digit never takes."""
    (_, stride), *inner = block.levels
    low, high = (index // block.weights[0] for index in (block.start, block.last))
    result.offset += low * stride
    start = block.start - low * block.weights[0]
    levels = [(high - low + 1, stride), *inner]
    size, stride = levels[-1]
    # All moves are multiples of it: the rest of the innermost digit never changes.
    common = math.gcd(size, *(move.stride for move in block.moves))
    result.offset += start % common * stride
    levels[-1] = size // common, stride * common
    moves = tuple(replace(m, stride=m.stride // common) for m in block.moves)
    kept = tuple(level for level in levels if level[0] > 1)
    return _Block(kept, moves, start // common)


def _joined(source_size: int, result: _Result) -> tuple[View, ...]:
    """One view if everything folded, else two with the blocks in order."""
    folded = sorted(result.folded, key=lambda move: move.place)
    if not result.kept:
        return (View.of(source_size, _digits_of(folded), result.offset),)
    blocks, folded = _widened(result.kept, _merged(folded))
    blocks += [
        _Block(((m.size, m.stride),), (replace(m, stride=1),), 0)
        for m in folded
        if m.stride
    ]
    # Any order gives the same map: the widest strides first, as in a value unmoved.
    blocks.sort(key=lambda block: [(-stride, size) for size, stride in block.levels])
    weights = strides_of(tuple(block.size for block in blocks))
    placed = list(zip(blocks, weights, strict=True))
    moves = [move for move in folded if not move.stride]
    moves += [
        replace(move, stride=move.stride * weight)
        for block, weight in placed
        for move in block.moves
    ]
    levels = [level for block in blocks for level in block.levels]
    first = View.of(source_size, levels, result.offset)
    start = sum(block.start * weight for block, weight in placed)
    return first, View.of(first.num_elements, _digits_of(moves), start)


def _digits_of(moves: Iterable[_Move]) -> list[Digit]:
    ordered = sorted(moves, key=lambda move: move.place)
    return [(move.size, move.stride) for move in ordered]


def _merged(moves: Sequence[_Move]) -> list[_Move]:
    """Parts of one outer digit that continue each other put together again."""
    merged: list[_Move] = []
    for move in moves:
        last = merged[-1] if merged else None
        is_next = last is not None and last.stride == move.size * move.stride
        if last is not None and is_next and last.place[0] == move.place[0]:
            merged[-1] = replace(last, size=last.size * move.size, stride=move.stride)
        else:
            merged.append(move)
    return merged


def _widened(
    blocks: Sequence[_Block], folded: Sequence[_Move]
) -> tuple[list[_Block], list[_Move]]:
    """Blocks with the folded digits that follow them in the outer view.

    They fold because the block takes a whole number of them. A later slice of both
    may not, and can only be told from one that was made at once if they are together.
    """
    wide, left = list(blocks), list(folded)
    moves = [*left, *(move for block in wide for move in block.moves)]
    order = sorted(move.place for move in moves)
    for index, block in enumerate(wide):
        while (inner := _find_next(block, left, order)) is not None:
            left.remove(inner)
            order.remove(inner.place)
            wide[index] = block = _with_inner(block, inner)
    return wide, left


def _find_next(
    block: _Block, folded: Sequence[_Move], order: Sequence[_Place]
) -> _Move | None:
    """The folded digit after the last one of a block, if that moves by ones."""
    last = max(block.moves, key=lambda move: move.place)
    position = order.index(last.place) + 1
    if last.stride != 1 or position == len(order):
        return None
    return next((m for m in folded if m.place == order[position] and m.stride), None)


def _with_inner(block: _Block, inner: _Move) -> _Block:
    """The block with one more digit inside, which its last move counts on into."""
    levels = View.of(0, (*block.levels, (inner.size, inner.stride)), 0).digits
    *before, last = sorted(block.moves, key=lambda move: move.place)
    moves = [replace(m, stride=m.stride * inner.size) for m in before]
    moves.append(replace(last, size=last.size * inner.size))
    return _Block(levels, tuple(moves), block.start * inner.size)
