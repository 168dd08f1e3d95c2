"""Parts of plans on the tiles of a chip: a plan is made as if its chip were the first.

In: vectors and vertex groups over the tiles of one chip. Out: the same over the tiles
of all chips of the program.
"""

from __future__ import annotations

from popple.program import TileVector, VertexGroup


class ChipTiles:
    """Moves the parts of plans to the tiles of their chips.

    Equal layers share plans, and so the parts that were moved already: what is moved is
    remembered. Parts are first told apart by identity, since hashing vectors and
    comparing groups takes longer; whoever asks keeps them alive as long as this is in
    use. Equal vectors become one, whichever plan they are of.
    """

    def __init__(self, num_chips: int, tiles_per_chip: int) -> None:
        self._tiles_per_chip = tiles_per_chip
        self._num_tiles = num_chips * tiles_per_chip
        self._groups: dict[tuple[int, int], tuple[VertexGroup, ...]] = {}
        self._known: dict[tuple[int, int], tuple[TileVector, TileVector]] = {}
        self._vectors: dict[tuple[TileVector, int], TileVector] = {}

    def vector(self, vector: TileVector, chip: int) -> TileVector:
        """A vector over the tiles of one chip, among those of all chips."""
        key = (id(vector), chip)
        if (known := self._known.get(key)) is None:
            # With the vector itself: some are made for one question, and another could
            # come to lie where it lay.
            known = self._known[key] = vector, self._moved(vector, chip)
        return known[1]

    def _moved(self, vector: TileVector, chip: int) -> TileVector:
        key = (vector, chip)
        if (known := self._vectors.get(key)) is None:
            first = chip * self._tiles_per_chip
            known = self._vectors[key] = vector.shifted(first, self._num_tiles)
        return known

    def planned_groups(
        self, groups: tuple[VertexGroup, ...], chip: int
    ) -> tuple[VertexGroup, ...]:
        """The groups of a step of a plan, which live as long as the plan does.

        Steps of equal layers have the same tuple: others know by its identity what
        they have timed, counted and written already.
        """
        key = (id(groups), chip)
        if (known := self._groups.get(key)) is None:
            known = tuple(self.group(group, chip) for group in groups)
            self._groups[key] = known
        return known

    def group(self, group: VertexGroup, chip: int) -> VertexGroup:
        """A group that was made for this one place."""
        flops = group.flops_by_tile
        return VertexGroup(
            group.codelet,
            self.vector(group.count_by_tile, chip),
            self.vector(group.cycles_by_tile, chip),
            None if flops is None else self.vector(flops, chip),
            group.num_edges,
            group.list_bytes,
        )
