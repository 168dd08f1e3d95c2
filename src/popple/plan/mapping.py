"""Tile mappings: the linear one, those of views, and whether two agree.

Views of a value share its memory. Which bytes of it they show is derived from the
mapping of the whole and from their index map (`popple.plan.layout`), never from the
bytes of a view in between, so it does not depend on how a view came about.
"""

from __future__ import annotations

from popple.graph import Signature, TensorType
from popple.plan.layout import (
    LINEAR,
    Dims,
    Flat,
    Layout,
    Step,
    Unknown,
    View,
    inverse,
    permuted,
    repeated,
    sliced,
)
from popple.plan.opplan import TileMapping
from popple.program import Run, TileVector
from popple.target import Chip
from popple.units import ceil_div

MIN_BYTES_PER_TILE = 128


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
    # A word of the data path is never cut apart.
    grain = chip.data_path_bits // 8
    used = num_linear_tiles(tensor.num_bytes, grain, chip.num_tiles)
    bytes_by_tile = TileVector.spread(tensor.num_bytes, used, chip.num_tiles, grain)
    return _rotated(bytes_by_tile, used, begin_tile % chip.num_tiles)


def spread_mapping(
    tensor: TensorType,
    chip: Chip,
    grain_elements: int,
    min_elements: int,
    begin_tile: int = 0,
) -> TileMapping:
    """Elements in flat order, at least `min_elements` on a tile, in grains.

    For small results of much work, such as sums: a linear mapping would put 128 bytes
    of them, and all the work, on one tile. `begin_tile` rotates the mapping.
    """
    size, tiles = tensor.dtype.num_bytes, chip.num_tiles
    grain, least = grain_elements * size, min_elements * size
    used = num_linear_tiles(tensor.num_bytes, grain, tiles, least)
    vector = TileVector.spread(tensor.num_bytes, used, tiles, grain)
    return _rotated(vector, used, begin_tile % tiles)


def _rotated(vector: TileVector, num_used: int, offset: int) -> TileMapping:
    # With all tiles in use there is no first one to tell apart.
    if num_used == len(vector) or not offset:
        return TileMapping(vector, LINEAR)
    return TileMapping(vector.rotated(offset), Layout(Flat(offset)))


def dithered_tile(shape: Dims, num_tiles: int) -> int:
    """A tile for small tensors that belong to a large one of this shape to begin on.

    PopLibs picks it by a hash of the shape (poputil/TileMapping.cpp,
    `chooseMappingOffset`), so that those of many layers do not all begin on the first
    tile. Any hash does; this one is of Fowler, Noll and Vo.
    """
    found = 2166136261
    for dim in shape:
        found = (found ^ dim) * 16777619 % 2**32
    return found % num_tiles


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
    # Bytes may agree by chance; the order of elements never does.
    if mapping.layout != other.layout:
        return False
    if tensor.dtype.num_bytes == other_type.dtype.num_bytes:
        return mapping.bytes_by_tile == other.bytes_by_tile
    return elements_by_tile(mapping, tensor) == elements_by_tile(other, other_type)


def mapping_like(mapping: TileMapping, result: TensorType) -> TileMapping:
    """`result` spread over the tiles as `mapping` spreads its own value."""
    total, size = result.num_bytes, result.dtype.num_bytes
    before = mapping.bytes_by_tile.total
    if before == total:
        return mapping
    vector = rescaled(mapping.bytes_by_tile, total, size)
    # The whole of which the value is like a part grows with it.
    base = mapping.base_bytes
    if base is not None and before:
        base = rescaled(base, base.total * total // (before * size) * size, size)
    return TileMapping(vector, mapping.layout, base)


def rescaled(vector: TileVector, total: int, grain: int) -> TileVector:
    """A vector of sum `total`, in grains, in proportion to `vector`.

    What rounding down leaves over goes to the first tiles, a grain each, so the number
    of runs grows by at most one. `grain` divides `total`.
    """
    whole = vector.total
    # Nothing to be in proportion to: one tile takes it all.
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
    view = find_view(signature)
    if view is None:
        return source
    return _viewed(source, view, signature.inputs[0].dtype.num_bytes)


def source_mapping(signature: Signature, view: TileMapping) -> TileMapping | None:
    """How the source must lie so that its view lies as `view`, if the view tells."""
    found = find_view(signature)
    if found is None:
        return view
    # Of a part one does not know how the rest should lie.
    if signature.kind != "permute" or not isinstance(found, View):
        return None
    return _viewed(view, inverse(found), signature.inputs[0].dtype.num_bytes)


def find_view(signature: Signature) -> Step | None:
    """The index map of a view op, None if flat indices stay as they are."""
    before, after = signature.inputs[0].shape, signature.outputs[0].shape
    if signature.kind == "permute":
        # A plain transpose has no order: it reverses the dimensions.
        reverse = tuple(reversed(range(len(before))))
        return permuted(before, signature.ints("order") or reverse)
    # A reshape keeps flat indices, and a slice of everything is everything.
    if signature.kind == "reshape" or before == after:
        return None
    if signature.kind == "broadcast" and _is_repeated(before, after):
        return repeated(before, after)
    if signature.kind == "slice":
        return _find_slice(signature)
    return Unknown(signature.kind, before, after)


def _is_repeated(before: Dims, after: Dims) -> bool:
    """Whether a shape becomes another one by repeating dimensions of one element."""
    own = after[len(after) - len(before) :]
    if len(own) != len(before):
        return False
    return all(size in (1, whole) for size, whole in zip(before, own, strict=True))


def _find_slice(signature: Signature) -> Step:
    """A slice from `start` on along `dim`; other dimensions are cut at their ends.

    Steps are not told: a slice of every second element looks like one of the first
    half, which has as many bytes.
    """
    before, after = signature.inputs[0].shape, signature.outputs[0].shape
    is_placed = any(key == "start" for key, _ in signature.attrs)
    dim, start = _number(signature, "dim"), _number(signature, "start")
    # An index instead of a range: the dimension is gone from the result.
    is_index = is_placed and len(after) == len(before) - 1
    sizes = (*after[:dim], 1, *after[dim:]) if is_index else after
    starts = tuple(start if axis == dim else 0 for axis in range(len(before)))
    if len(sizes) != len(before) or any(
        first + size > whole
        for first, size, whole in zip(starts, sizes, before, strict=True)
    ):
        return Unknown("slice", before, after, (dim, start) if is_placed else ())
    return sliced(before, starts if is_placed else None, sizes)


def _number(signature: Signature, name: str) -> int:
    """The first number of an attribute, 0 without one."""
    numbers = signature.ints(name)
    return max(0, numbers[0]) if numbers else 0


def _viewed(source: TileMapping, view: Step, element_bytes: int) -> TileMapping:
    layout = source.layout.viewed(view)
    base = source.bytes_by_tile if source.base_bytes is None else source.base_bytes
    vector = _bytes_in_view(layout, base, element_bytes)
    return TileMapping(vector, layout, None if vector == base else base)


def _bytes_in_view(layout: Layout, base: TileVector, element_bytes: int) -> TileVector:
    """Bytes of a value on every tile that views of it show.

    Of data in flat order they are those of the rows that the views reach into, else
    every tile has its share. What views repeat lies in memory once.
    """
    count = layout.num_distinct
    # Permutations and repetitions of the whole have all its bytes.
    if count is None or count * element_bytes == base.total:
        return base
    window = layout.find_window(base.total // element_bytes)
    if window is not None:
        begin, end = (index * element_bytes for index in window)
        base = _stretch(base, layout.first_tile, begin, end)
    if count * element_bytes == base.total:
        return base
    return rescaled(base, count * element_bytes, element_bytes)


def _stretch(vector: TileVector, first_tile: int, begin: int, end: int) -> TileVector:
    """The bytes from `begin` to `end` in flat order, on the tiles they lie on."""
    runs: list[Run] = []
    position = 0
    for count, value in vector.rotated(-first_tile).runs:
        runs += _overlap(count, value, begin - position, end - position)
        position += count * value
    return TileVector.of(runs).rotated(first_tile)


def _overlap(count: int, value: int, begin: int, end: int) -> list[Run]:
    """Bytes of a run of tiles that lie between two byte positions of the run."""
    size = count * value
    begin, end = max(0, begin), min(size, end)
    if value == 0 or begin >= end:
        return [(count, 0)]
    first, last = begin // value, (end - 1) // value
    # The stretch begins and ends on one tile.
    if first == last:
        return [(first, 0), (1, end - begin), (count - first - 1, 0)]
    head, tail = (first + 1) * value - begin, end - last * value
    whole = [(last - first - 1, value)]
    return [(first, 0), (1, head), *whole, (1, tail), (count - last - 1, 0)]
