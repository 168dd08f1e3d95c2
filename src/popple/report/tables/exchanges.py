"""Tables of exchanges, stream copies and code copies: programs that move data.

Sums and maxima by chip are redundant in the format: written here from the
vectors by tile, and not read back.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from popple.report.codec import Runs, StoredRuns, encode_rle, length_of, zip_runs
from popple.report.parts.programs import (
    ChipExchangePayload,
    CodeCopyPayload,
    Endpoints,
    ExchangePayload,
    HostExchange,
    Payload,
    StreamCopyPayload,
    Traffic,
)
from popple.report.tables.rows import (
    FLAG,
    Column,
    RecordTable,
    columns,
    insert_rows,
    select_rows,
)
from popple.report.tables.vectors import VectorReader, VectorWriter

_RECEIVED, _SENT = "bytes_received_by_tile_rle", "bytes_sent_by_tile_rle"
_BY_CHIP = (
    "bytes_received_by_ipu_rle",
    "bytes_sent_by_ipu_rle",
    "max_data_sent_and_received_by_ipu_rle",
)
# Without a name: these columns are a part of several tables.
_ENDPOINTS = RecordTable(
    "",
    Endpoints,
    columns(
        "source_regions_id",
        "destination_regions_id",
        source_variables="source_vars",
        destination_variables="destination_vars",
    ),
)
_ENDPOINT_NAMES = tuple(column.name for column in _ENDPOINTS.columns)
_HOST_EXCHANGES = RecordTable(
    "",
    HostExchange,
    (
        *columns("stream", "regions", "regions_id"),
        Column("is_remote_buffer", "is_remote_buffer", FLAG),
    ),
)
_HOST_NAMES = (
    "stream_copy_mid_id",
    *(column.name for column in _HOST_EXCHANGES.columns),
)


@dataclass(frozen=True)
class ExchangeWriter:
    """Writes the payloads of programs that move data, numbered from 0."""

    connection: sqlite3.Connection
    compiled: VectorWriter
    tiles_per_chip: int

    def insert_exchanges(self, payloads: Sequence[ExchangePayload]) -> None:
        """Exchanges within chips."""
        # By identity: programs of equal layers share their payload.
        known = {
            id(payload): (
                *self._traffic(payload.traffic),
                encode_rle(payload.code_bytes_by_tile),
                *_ENDPOINTS.encode(payload.endpoints),
            )
            for payload in {id(each): each for each in payloads}.values()
        }
        rows = (known[id(payload)] for payload in payloads)
        names = ("code_bytes_by_tile_rle", *_ENDPOINT_NAMES)
        self._insert("program_type_do_exchange", "cycles_by_tile_ids", names, rows)

    def insert_chip_exchanges(self, payloads: Sequence[ChipExchangePayload]) -> None:
        """Exchanges between chips."""
        rows = [
            (
                *self._traffic(payload.traffic),
                payload.sync_type,
                *_ENDPOINTS.encode(payload.endpoints),
            )
            for payload in payloads
        ]
        names = ("sync_type", *_ENDPOINT_NAMES)
        cycles = "estimated_cycles_by_tile_ids"
        self._insert("program_type_global_exchange", cycles, names, rows)

    def insert_stream_copies(self, payloads: Sequence[StreamCopyPayload]) -> None:
        """Exchanges with the host."""
        rows = [self._traffic(payload.traffic) for payload in payloads]
        cycles = "estimated_cycles_by_tile_ids"
        self._insert("program_type_stream_copy_mid", cycles, (), rows)
        from_host = [payload.from_host for payload in payloads]
        to_host = [payload.to_host for payload in payloads]
        _insert_host(self.connection, "host_exchange_from_host", from_host)
        _insert_host(self.connection, "host_exchange_to_host", to_host)

    def insert_code_copies(self, payloads: Sequence[CodeCopyPayload]) -> None:
        """Copies of code to tiles."""
        rows = [
            (
                index,
                self.compiled.ids_of(each.cycles_by_tile),
                each.destination_regions_id,
            )
            for index, each in enumerate(payloads)
        ]
        names = ("id", "cycles_by_tile_ids", "destination_regions_id")
        insert_rows(self.connection, "program_type_code_copy", names, rows)

    def _insert(
        self, table: str, cycles: str, names: Sequence[str], rows: Iterable[Any]
    ) -> None:
        listed = ("id", _RECEIVED, _SENT, *_BY_CHIP, cycles, *names)
        numbered = ((index, *row) for index, row in enumerate(rows))
        insert_rows(self.connection, table, listed, numbered)

    def _traffic(self, traffic: Traffic) -> tuple[Any, ...]:
        moved = traffic.received_bytes_by_tile, traffic.sent_bytes_by_tile
        return (
            *_encoded_bytes(*map(_hashable, moved), self.tiles_per_chip),
            self.compiled.ids_of(traffic.cycles_by_tile),
        )


def _hashable(runs: Runs) -> Runs:
    return runs if isinstance(runs, StoredRuns) else tuple(runs)


# Repeated layers exchange the same. The limit bounds memory.
@lru_cache(maxsize=16384)
def _encoded_bytes(
    received: Runs, sent: Runs, tiles_per_chip: int
) -> tuple[bytes, ...]:
    """Bytes by tile and by chip, as the columns of traffic hold them."""
    by_chip = sum_by_chip(received, sent, tiles_per_chip)
    return tuple(map(encode_rle, (received, sent, *by_chip)))


def sum_by_chip(
    received_by_tile: Runs, sent_by_tile: Runs, tiles_per_chip: int
) -> tuple[Runs, Runs, Runs]:
    """Bytes received, bytes sent, and the most one tile moves, for every chip."""
    num_chips = length_of(received_by_tile) // tiles_per_chip
    received, sent, most = (defaultdict[int, int](int) for _ in range(3))
    tile = 0
    for count, (received_bytes, sent_bytes) in zip_runs(received_by_tile, sent_by_tile):
        stop = tile + count
        # Most exchanges are of one chip of many: idle tiles are not cut where chips
        # end.
        while (received_bytes or sent_bytes) and tile < stop:
            chip = tile // tiles_per_chip
            end = min(stop, (chip + 1) * tiles_per_chip)
            received[chip] += (end - tile) * received_bytes
            sent[chip] += (end - tile) * sent_bytes
            most[chip] = max(most[chip], received_bytes + sent_bytes)
            tile = end
        tile = stop
    return (
        _spread(received, num_chips),
        _spread(sent, num_chips),
        _spread(most, num_chips),
    )


def _spread(values: Mapping[int, int], num_chips: int) -> Runs:
    """One value for each chip, 0 for those that are not named."""
    runs: list[tuple[int, int]] = []
    first = 0
    for chip in sorted(values):
        runs += (chip - first, 0), (1, values[chip])
        first = chip + 1
    runs.append((num_chips - first, 0))
    return tuple(run for run in runs if run[0])


def _insert_host(
    connection: sqlite3.Connection,
    table: str,
    exchanges: Sequence[Sequence[HostExchange]],
) -> None:
    rows = [
        (index, *_HOST_EXCHANGES.encode(exchange))
        for index, group in enumerate(exchanges)
        for exchange in group
    ]
    insert_rows(connection, table, _HOST_NAMES, rows)


def select_exchanges(
    connection: sqlite3.Connection, compiled: VectorReader
) -> dict[int, Payload]:
    """Payloads of exchanges within chips by number."""
    names = ("cycles_by_tile_ids", "code_bytes_by_tile_rle", *_ENDPOINT_NAMES)
    rows = _select_traffic(connection, "program_type_do_exchange", names, compiled)
    return {
        number: ExchangePayload(traffic, StoredRuns(code), _ENDPOINTS.decode(ends))
        for number, traffic, (code, *ends) in rows
    }


def select_chip_exchanges(
    connection: sqlite3.Connection, compiled: VectorReader
) -> dict[int, Payload]:
    """Payloads of exchanges between chips by number."""
    names = ("estimated_cycles_by_tile_ids", "sync_type", *_ENDPOINT_NAMES)
    table = "program_type_global_exchange"
    return {
        number: ChipExchangePayload(traffic, sync_type, _ENDPOINTS.decode(ends))
        for number, traffic, (sync_type, *ends) in _select_traffic(
            connection, table, names, compiled
        )
    }


def select_stream_copies(
    connection: sqlite3.Connection, compiled: VectorReader
) -> dict[int, Payload]:
    """Payloads of exchanges with the host by number."""
    table, names = "program_type_stream_copy_mid", ("estimated_cycles_by_tile_ids",)
    from_host = _select_host(connection, "host_exchange_from_host")
    to_host = _select_host(connection, "host_exchange_to_host")
    return {
        number: StreamCopyPayload(
            traffic, tuple(from_host[number]), tuple(to_host[number])
        )
        for number, traffic, _ in _select_traffic(connection, table, names, compiled)
    }


def select_code_copies(
    connection: sqlite3.Connection, compiled: VectorReader
) -> dict[int, Payload]:
    """Payloads of code copies by number."""
    names = ("id", "cycles_by_tile_ids", "destination_regions_id")
    return {
        number: CodeCopyPayload(compiled.find_all(ids), regions_id)
        for number, ids, regions_id in select_rows(
            connection, "program_type_code_copy", names
        )
    }


def _select_traffic(
    connection: sqlite3.Connection,
    table: str,
    names: Sequence[str],
    compiled: VectorReader,
) -> list[tuple[int, Traffic, list[Any]]]:
    listed = ("id", _RECEIVED, _SENT, *names)
    return [
        (
            number,
            Traffic(StoredRuns(received), StoredRuns(sent), compiled.find_all(ids)),
            rest,
        )
        for number, received, sent, ids, *rest in select_rows(connection, table, listed)
    ]


def _select_host(
    connection: sqlite3.Connection, table: str
) -> defaultdict[int, list[HostExchange]]:
    groups: defaultdict[int, list[HostExchange]] = defaultdict(list)
    for number, *row in select_rows(connection, table, _HOST_NAMES):
        groups[number].append(_HOST_EXCHANGES.decode(row))
    return groups
