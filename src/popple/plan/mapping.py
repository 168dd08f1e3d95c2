"""Tile mappings: the linear one, those of views, and whether two agree.

A layout is a string that names which flat index of a value lies where: a base
(`linear`, `linear+16` when the first tile is 16, or a name a matmul plan made up) and
the views taken since, as `>permute[2,3:1,0]`. Reshapes keep the flat order and so the
name; a permutation followed by its inverse cancels. Equal layouts with equal elements
on every tile mean that nothing need move.
"""

from __future__ import annotations

import hashlib
import math

from popple.graph import Signature, TensorType
from popple.plan.opplan import TileMapping
from popple.plan.permutation import Permutation
from popple.program import Run, TileVector
from popple.target import Chip
from popple.units import ceil_div

LINEAR = "linear"
MIN_BYTES_PER_TILE = 128
_LONGEST_LAYOUT = 160


def num_linear_tiles(
    num_bytes: int,
    grain_bytes: int,
    num_tiles: int,
    min_bytes: int = MIN_BYTES_PER_TILE,
) -> int:
    """Tiles a linear mapping uses.

    Poplar's rule: at least 128 bytes a tile, in grains of one 64-bit word, and no
    more tiles than the largest share makes necessary (PopLibs poputil/Util.cpp).
    """
    grains = max(1, ceil_div(num_bytes, grain_bytes))
    enough = max(1, grains // ceil_div(min_bytes, grain_bytes))
    share = max(ceil_div(grains, num_tiles), ceil_div(grains, enough))
    return ceil_div(grains, share)


def linear_mapping(tensor: TensorType, chip: Chip, begin_tile: int = 0) -> TileMapping:
    """Elements in flat order over as many tiles as Poplar would take.

    Shares differ by at most one grain as in Poplar, but the larger ones come first,
    which keeps the vector to a few runs. `begin_tile` rotates the mapping.
    """
    grain = chip.data_path_bits // 8
    used = num_linear_tiles(tensor.num_bytes, grain, chip.num_tiles)
    bytes_by_tile = TileVector.spread(tensor.num_bytes, used, chip.num_tiles, grain)
    offset = begin_tile % chip.num_tiles
    if used == chip.num_tiles or not offset:
        return TileMapping(bytes_by_tile, LINEAR)
    return TileMapping(bytes_by_tile.rotated(offset), f"{LINEAR}+{offset}")


def spread_mapping(
    tensor: TensorType, chip: Chip, grain_elements: int, min_elements: int
) -> TileMapping:
    """Elements in flat order, at least `min_elements` on a tile, in grains.

    For small results of much work, such as sums: a linear mapping would put 128 bytes
    of them, and all the work, on one tile.
    """
    size, tiles = tensor.dtype.num_bytes, chip.num_tiles
    grain, least = grain_elements * size, min_elements * size
    used = num_linear_tiles(tensor.num_bytes, grain, tiles, least)
    vector = TileVector.spread(tensor.num_bytes, used, tiles, grain)
    return TileMapping(vector, LINEAR)


def is_linear(mapping: TileMapping) -> bool:
    """Whether elements lie in flat order, on whatever tile they begin."""
    return flat_order(mapping) == LINEAR


def flat_order(mapping: TileMapping) -> str:
    """The layout without the tile it begins on."""
    base, mark, views = mapping.layout.partition(">")
    return base.partition("+")[0] + mark + views


def first_tile(mapping: TileMapping) -> int:
    """The tile a rotated linear mapping begins on."""
    _, _, offset = mapping.layout.partition(">")[0].partition("+")
    return int(offset) if offset.isdigit() else 0


def elements_by_tile(mapping: TileMapping, tensor: TensorType) -> TileVector:
    """Elements on every tile; part of one counts as one."""
    size = tensor.dtype.num_bytes
    return mapping.bytes_by_tile.map(lambda num_bytes: ceil_div(num_bytes, size))


def has_aliases(mapping: TileMapping, tensor: TensorType) -> bool:
    """Whether several elements share memory, as in a broadcast view."""
    return mapping.bytes_by_tile.total < tensor.num_bytes


def is_colocated(
    mapping: TileMapping, tensor: TensorType, other: TileMapping, other_type: TensorType
) -> bool:
    """Whether equal elements lie on equal tiles, whatever their size in bytes."""
    if mapping.layout != other.layout:
        return False
    if tensor.dtype.num_bytes == other_type.dtype.num_bytes:
        return mapping.bytes_by_tile == other.bytes_by_tile
    return elements_by_tile(mapping, tensor) == elements_by_tile(other, other_type)


def mapping_like(mapping: TileMapping, result: TensorType) -> TileMapping:
    """`result` spread over the tiles as `mapping` spreads its own value."""
    total = result.num_bytes
    if mapping.bytes_by_tile.total == total:
        return mapping
    vector = rescaled(mapping.bytes_by_tile, total, result.dtype.num_bytes)
    return TileMapping(vector, mapping.layout)


def rescaled(vector: TileVector, total: int, grain: int) -> TileVector:
    """A vector of sum `total`, in grains, in proportion to `vector`.

    What rounding down leaves over goes to the first tiles, a grain each, so the number
    of runs grows by at most one. `grain` divides `total`.
    """
    whole = vector.total
    if whole == 0:
        return TileVector.spread(total, 1, len(vector))
    scaled = [(c, v * total // (whole * grain) * grain) for c, v in vector.runs]
    left = (total - sum(c * v for c, v in scaled)) // grain
    runs: list[Run] = []
    for (count, value), (_, old) in zip(scaled, vector.runs, strict=True):
        extra = min(count, left) if old else 0
        left -= extra
        runs += [(extra, value + grain), (count - extra, value)]
    return TileVector.of(runs)


def view_mapping(signature: Signature, source: TileMapping) -> TileMapping:
    """Where the elements of a view lie, given where those of its source do."""
    before, after = signature.inputs[0], signature.outputs[0]
    if signature.kind == "permute":
        return _permuted(source, _permutation(signature))
    if signature.kind == "reshape" or before.shape == after.shape:
        return source
    token = _view_token(signature)
    if signature.kind == "broadcast":
        return TileMapping(source.bytes_by_tile, _extended(source.layout, token))
    if _is_leading_slice(signature, source):
        part = _leading_part(signature, source)
        return TileMapping(part, _extended(source.layout, token))
    vector = rescaled(source.bytes_by_tile, after.num_bytes, after.dtype.num_bytes)
    return TileMapping(vector, _extended(source.layout, token))


def source_mapping(signature: Signature, view: TileMapping) -> TileMapping | None:
    """How the source must lie so that its view lies as `view`, if the view tells."""
    before, after = signature.inputs[0], signature.outputs[0]
    if signature.kind == "permute":
        return _permuted(view, _permutation(signature).inverse())
    if signature.kind == "reshape" or before.shape == after.shape:
        return view
    return None


def _permutation(signature: Signature) -> Permutation:
    """The order given, or the reverse one, which a plain transpose means."""
    shape = signature.inputs[0].shape
    return Permutation(shape, signature.ints("order") or _reversed_dims(shape))


def _reversed_dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(reversed(range(len(shape))))


def _permuted(source: TileMapping, step: Permutation) -> TileMapping:
    base, _, last = source.layout.rpartition(">")
    step = step.normal()
    if (previous := Permutation.parse(last)) and (joined := previous.then(step)):
        return TileMapping(source.bytes_by_tile, _with_step(base, joined.normal()))
    return TileMapping(source.bytes_by_tile, _with_step(source.layout, step))


def _with_step(layout: str, step: Permutation) -> str:
    return layout if step.is_identity else _extended(layout, str(step))


def _view_token(signature: Signature) -> str:
    before, after = signature.inputs[0].shape, signature.outputs[0].shape
    shapes = f"{','.join(map(str, before))}:{','.join(map(str, after))}"
    attrs = "".join(f" {key}={value}" for key, value in signature.attrs)
    return f"{signature.kind}[{shapes}{attrs}]"


def _extended(layout: str, token: str) -> str:
    full = f"{layout}>{token}"
    if len(full) <= _LONGEST_LAYOUT:
        return full
    digest = hashlib.blake2s(full.encode(), digest_size=8).hexdigest()
    return f"views-{digest}"


def _is_leading_slice(signature: Signature, source: TileMapping) -> bool:
    """Whether the slice is a known stretch of flat indices of a linear mapping."""
    before, after = signature.inputs[0].shape, signature.outputs[0].shape
    has_start = any(key == "start" for key, _ in signature.attrs)
    if signature.kind != "slice" or not has_start or not before:
        return False
    is_leading = after in (before[1:], (*after[:1], *before[1:]))
    return is_leading and is_linear(source)


def _leading_part(signature: Signature, source: TileMapping) -> TileVector:
    """The bytes of a stretch of flat indices, kept on the tiles they lie on."""
    offset = first_tile(source)
    vector = source.bytes_by_tile.rotated(-offset)
    before, after = signature.inputs[0], signature.outputs[0]
    row_bytes = before.dtype.num_bytes * math.prod(before.shape[1:])
    begin = max(0, _slice_start(signature)) * row_bytes
    end = min(begin + after.num_bytes, before.num_bytes)
    runs: list[Run] = []
    position = 0
    for count, value in vector.runs:
        runs += _overlap(count, value, begin - position, end - position)
        position += count * value
    part = TileVector.of(runs)
    if part.total != after.num_bytes:  # a step or an index past the end
        part = rescaled(vector, after.num_bytes, after.dtype.num_bytes)
    return part.rotated(offset)


def _slice_start(signature: Signature) -> int:
    start = signature.attr("start", 0)
    if isinstance(start, tuple):
        start = start[0] if start else 0
    return int(start)


def _overlap(count: int, value: int, begin: int, end: int) -> list[Run]:
    """Bytes of a run of tiles that lie between two byte positions of the run."""
    size = count * value
    begin, end = max(0, begin), min(size, end)
    if value == 0 or begin >= end:
        return [(count, 0)]
    first, last = begin // value, (end - 1) // value
    if first == last:
        return [(first, 0), (1, end - begin), (count - first - 1, 0)]
    head, tail = (first + 1) * value - begin, end - last * value
    whole = [(last - first - 1, value)]
    return [(first, 0), (1, head), *whole, (1, tail), (count - last - 1, 0)]
