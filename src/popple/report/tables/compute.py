"""Tables of vertex types, compute sets, vertex instances and their memory."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from popple.report.codec import (
    Runs,
    StoredRuns,
    decode_ascending,
    decode_packed,
    encode_ascending,
    encode_packed,
    encode_rle,
    encode_varints,
)
from popple.report.parts.compute import (
    ComputeSet,
    VertexInstances,
    VertexMemory,
    VertexType,
)
from popple.report.tables.rows import (
    PACKED,
    RLE,
    Column,
    ColumnCode,
    RecordTable,
    insert_rows,
    select_rows,
)
from popple.report.tables.vectors import VectorReader, VectorWriter

_SET_COLUMNS = (
    "compute_set",
    "name",
    "vertex_types",
    "vertex_counts",
    "edge_count",
    "debug_id",
    "cycles_by_tile_ids",
    "estimated_flops_by_tile",
    "var_ids_diff_rle",
)
_INSTANCE_COLUMNS = ("compute_set", "vertex_type", "instances_by_tile")
_CYCLE_COLUMNS = ("compute_set_id", "cycles_by_tile_ids")
_TYPE_COLUMNS = ("id", "name", "size", "source")


def _memory_table(name: str, code: ColumnCode) -> RecordTable[VertexMemory]:
    pairs = (
        ("copy_pointer_bytes", "copy_ptr_bytes"),
        ("descriptor_bytes", "descriptor_bytes"),
        ("edge_pointer_bytes", "edge_ptr_bytes"),
        ("padding_bytes", "padding_bytes"),
        ("vertex_data_bytes", "vertex_data_bytes"),
    )
    listed = tuple(Column(ours, theirs, code) for ours, theirs in pairs)
    return RecordTable(name, VertexMemory, listed)


# The format codes the same columns differently in the two tables.
_SET_MEMORY = _memory_table("memory_by_compute_set", RLE)
_TYPE_MEMORY = _memory_table("memory_by_vertex_type", PACKED)
_NO_MEMORY = VertexMemory((), (), (), (), ())


def insert_vertex_types(
    connection: sqlite3.Connection, vertex_types: Sequence[VertexType]
) -> None:
    """Write vertex types with their code and state on tiles."""
    rows = [(t.id, t.name, t.state_bytes, t.source) for t in vertex_types]
    insert_rows(connection, "vertex_types", _TYPE_COLUMNS, rows)
    memory = [
        (
            each.id,
            encode_packed(each.code_bytes_by_tile),
            *_TYPE_MEMORY.encode(each.memory or _NO_MEMORY),
        )
        for each in vertex_types
    ]
    names = ("vertex_type", "code_bytes", *_names(_TYPE_MEMORY))
    insert_rows(connection, _TYPE_MEMORY.name, names, memory)


def select_vertex_types(connection: sqlite3.Connection) -> tuple[VertexType, ...]:
    """Read vertex types with their code and state on tiles."""
    names = ("vertex_type", "code_bytes", *_names(_TYPE_MEMORY))
    stored = select_rows(connection, _TYPE_MEMORY.name, names)
    memory = {row[0]: (decode_packed(row[1]), _memory(row[2:])) for row in stored}
    return tuple(
        VertexType(number, name, size, source, *memory.get(number, ((), None)))
        for number, name, size, source in select_rows(
            connection, "vertex_types", _TYPE_COLUMNS
        )
    )


def _memory(row: Sequence[Any]) -> VertexMemory | None:
    memory = _TYPE_MEMORY.decode(row)
    # Rows exist for every type, since its code is in the same table.
    return None if memory == _NO_MEMORY else memory


def _names(table: RecordTable[VertexMemory]) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def insert_compute_sets(
    connection: sqlite3.Connection,
    compute_sets: Sequence[ComputeSet],
    compiled: VectorWriter,
    executed: VectorWriter,
) -> None:
    """Write compute sets; their cycle vectors go to the vector writers."""
    vertices = _VertexWriter()
    rows = [_set_row(each, vertices, compiled) for each in compute_sets]
    insert_rows(connection, "compute_sets", _SET_COLUMNS, rows)
    instances = [
        (each.id, *group)
        for each in compute_sets
        for group in vertices.of(each).instances
    ]
    insert_rows(connection, "vertex_instances", _INSTANCE_COLUMNS, instances)
    cycles = [
        (each.id, executed.ids_of(each.cycles_by_tile))
        for each in compute_sets
        if each.cycles_by_tile
    ]
    insert_rows(connection, "compute_set_cycles_by_tile", _CYCLE_COLUMNS, cycles)
    memory = [
        (each.id, *_SET_MEMORY.encode(each.memory))
        for each in compute_sets
        if each.memory
    ]
    names = ("compute_set", *_names(_SET_MEMORY))
    insert_rows(connection, _SET_MEMORY.name, names, memory)


class _Vertices(NamedTuple):
    """The vertices of a compute set as columns hold them."""

    types: bytes
    counts: bytes
    instances: list[tuple[int, bytes]]


class _VertexWriter:
    """Encodes vertices; compute sets of equal layers share theirs."""

    def __init__(self) -> None:
        self._known: dict[int, _Vertices] = {}

    def of(self, compute_set: ComputeSet) -> _Vertices:
        """The columns of a compute set, which has to stay meanwhile."""
        groups = compute_set.instances
        if (known := self._known.get(id(groups))) is None:
            known = self._known[id(groups)] = _Vertices(
                encode_varints(group.vertex_type_id for group in groups),
                encode_varints(group.num_vertices for group in groups),
                [(g.vertex_type_id, encode_rle(g.count_by_tile)) for g in groups],
            )
        return known


def _set_row(
    compute_set: ComputeSet, vertices: _VertexWriter, compiled: VectorWriter
) -> tuple[Any, ...]:
    encoded = vertices.of(compute_set)
    flops, variables = compute_set.estimated_flops_by_tile, compute_set.variable_ids
    return (
        compute_set.id,
        compute_set.name,
        # Redundant beside `vertex_instances`: part of the format, not read back.
        encoded.types,
        encoded.counts,
        compute_set.num_edges,
        compute_set.debug_id,
        compiled.ids_of(compute_set.estimated_cycles_by_tile),
        encode_rle(flops) if flops else None,
        encode_ascending(variables) if variables else None,
    )


def select_compute_sets(
    connection: sqlite3.Connection, compiled: VectorReader, executed: VectorReader
) -> tuple[ComputeSet, ...]:
    """Read compute sets with their vertices, cycles and memory."""
    instances = _select_instances(connection)
    # Compute sets that never ran have no cycles.
    cycles = dict(select_rows(connection, "compute_set_cycles_by_tile", _CYCLE_COLUMNS))
    names = ("compute_set", *_names(_SET_MEMORY))
    stored = select_rows(connection, _SET_MEMORY.name, names)
    memory = {row[0]: _SET_MEMORY.decode(row[1:]) for row in stored}
    return tuple(
        ComputeSet(
            id=number,
            name=name,
            instances=tuple(instances[number]),
            num_edges=num_edges,
            debug_id=debug_id,
            cycles_by_tile=executed.find_all(cycles.get(number)),
            estimated_cycles_by_tile=compiled.find_all(estimated),
            estimated_flops_by_tile=_runs(flops),
            variable_ids=decode_ascending(variables or b""),
            memory=memory.get(number),
        )
        for number, name, _, _, num_edges, debug_id, estimated, flops, variables in (
            select_rows(connection, "compute_sets", _SET_COLUMNS)
        )
    )


def _runs(blob: bytes | None) -> Runs:
    return () if blob is None else StoredRuns(blob)


def _select_instances(
    connection: sqlite3.Connection,
) -> defaultdict[int, list[VertexInstances]]:
    instances: defaultdict[int, list[VertexInstances]] = defaultdict(list)
    rows = select_rows(connection, "vertex_instances", _INSTANCE_COLUMNS)
    for compute_set_id, vertex_type_id, blob in rows:
        group = VertexInstances(vertex_type_id, StoredRuns(blob))
        instances[compute_set_id].append(group)
    return instances
