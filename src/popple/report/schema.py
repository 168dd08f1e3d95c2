"""The tables of a report file: format 3.8, and those Popple adds.

Names and order of columns are the interface other tools rely on. A table is a
list of `column kind` pairs; a kind is `i` integer, `t` text, `b` blob, `r` real,
`f` flag or `key` integer primary key, with `?` where NULL is allowed. What
follows a bar is the table's composite key.
"""

from __future__ import annotations

import sqlite3

REPORT_FILE = "profile.pop"

# `n` and `x`: genuine files declare some integers as INT, and some without a type.
_KINDS = {
    "i": "INTEGER",
    "t": "TEXT",
    "b": "BLOB",
    "r": "REAL",
    "f": "BOOLEAN",
    "n": "INT",
    "x": "",
}

_TARGET = """
    bytes_per_ipu i, bytes_per_tile i, clock_frequency i, min_sync_delay i, num_ipus i,
    num_tiles i, tiles_per_ipu i, total_memory i, num_replicas i, ipus_per_replica i,
    tiles_per_replica i, memory_per_replica i, architecture t, type_ t,
    supervisorInstrFetchDelay i, memoryElementOffsets b, interleavedMemoryStart i,
    memoryRegionsOffsets b, tileMemoryBaseAddress i, tilesPerSuperTile i,
    numWorkerContexts i, exchangeBytesPerCycle i, memcpyBytesPerCycle i,
    instructionBytes i, supportsSuperTileSendReceive f, globalSyncCycles i,
    globalExchangePacketBytes i, tileLocalSyncSyncDelay i, tileLocalSyncExitDelay i,
    numStrideBits i, dataPathWidth i, fp8ConvUnitMaxPipelineDepth i?,
    fp16ConvUnitMaxPipelineDepth i, fp32ConvUnitMaxPipelineDepth i,
    fp8ConvUnitInputLoadElemsPerCycle i?, fp16ConvUnitInputLoadElemsPerCycle i,
    fp32ConvUnitInputLoadElemsPerCycle i, fp16InFp16OutConvUnitsPerTile i,
    fp16InFp32OutConvUnitsPerTile i, fp32InFp32OutConvUnitsPerTile i,
    fp8InFp16OutConvUnitsPerTile i?, convUnitCoeffLoadBytesPerCycle i,
    workerInstrFetchDelay i, maxImmediateOffsetInRunInstr i, rptCountMax i,
    atomicStoreGranularity i"""

_VERTEX_BYTES = """copy_ptr_bytes b, descriptor_bytes b, edge_ptr_bytes b,
    padding_bytes b, vertex_data_bytes b"""
_BY_CHIP = """bytes_received_by_ipu_rle b, bytes_sent_by_ipu_rle b,
    max_data_sent_and_received_by_ipu_rle b"""
_HOST_EXCHANGE = """stream_copy_mid_id i, stream t, regions t, is_remote_buffer i,
    regions_id n?"""
_PARAMETERS = "value t, is_default i"
_ENTRY = "compilation_step_id i?, id i, program i | compilation_step_id, id"

# A report of a program that was compiled but never ran holds these.
COMPILATION_TABLES = {
    "graph_info": "num_compute_sets i, num_edges i, num_vars i, num_vertices i",
    "target_info": _TARGET,
    "relative_sync_delay": "tile key, delay i",
    "optimization_info": "key t, value r",
    "date_time": "string t",
    "poplar_version": "string t, package_hash t, major i, minor i, point i",
    "version_info": "major i, minor i, point i, is_unstable_format f, file_type t",
    "compilation_trace": "dur i, name t, ts i",
    "compute_sets": """compute_set key, name t, vertex_types b, vertex_counts b,
        active_cycles_by_tile b?, active_cycles_by_vertex_type b?, cycles_by_tile b?,
        edge_count i?, debug_id i?, cycles_by_tile_ids b?, estimated_flops_by_tile b?,
        var_ids_diff_rle b?""",
    "vertex_instances": """compute_set i, vertex_type i, instances_by_tile b
        | compute_set, vertex_type""",
    "vertex_types": "id key, name t, size i, source t?",
    "programs": """compilation_step_id i?, id i, variant i, variant_index i?,
        children b?, name t?, debug_id i?, control_code_bytes_by_tile b?
        | compilation_step_id, id""",
    "program_types": "id key, name t, program_type_table t?",
    "program_type_call": "compilation_step_id i?, id key, function_id i",
    "program_type_on_tile_execute": "id key, compute_set i",
    "exchange_target": "id key",
    "exchange_regions": "id i, var_id i, regions t? | id, var_id",
    "program_type_do_exchange": f"""id key, bytes_received_by_tile_rle b,
        bytes_sent_by_tile_rle b, code_bytes_by_tile_rle b, cycles_by_tile_rle b?,
        source_vars t?, destination_vars t?, {_BY_CHIP}, cycles_by_tile_ids b?,
        source_regions_id n?, destination_regions_id x?""",
    "program_type_code_copy": """id key, cycles_by_tile_ids b?,
        destination_regions_id x?""",
    "program_type_global_exchange": f"""id key, bytes_received_by_tile_rle b,
        bytes_sent_by_tile_rle b, estimated_cycles_by_tile_rle b?, source_vars t?,
        destination_vars t?, {_BY_CHIP}, estimated_cycles_by_tile_ids b?,
        source_regions_id n?, destination_regions_id n?, sync_type t""",
    "program_type_repeat": "id key, repeat_count n?",
    "program_type_stream_copy_mid": f"""id key, bytes_received_by_tile_rle b,
        bytes_sent_by_tile_rle b, estimated_cycles_by_tile_rle b?, {_BY_CHIP},
        estimated_cycles_by_tile_ids b?""",
    "program_type_sync": "id key, sync_type t",
    "program_type_sans": "id key, tiles b",
    "program_type_sync_ans": "id key, tiles b",
    "control_programs": _ENTRY,
    "function_programs": _ENTRY,
    "host_exchange_from_host": _HOST_EXCHANGE,
    "host_exchange_to_host": _HOST_EXCHANGE,
    "memory_by_category": """category_id t?, interleaved_non_overlapped b,
        interleaved_overlapped b, non_interleaved_non_overlapped b,
        non_interleaved_overlapped b, overflowed_non_overlapped b,
        overflowed_overlapped b | category_id""",
    "memory_by_compute_set": f"compute_set key, {_VERTEX_BYTES}",
    "memory_by_vertex_type": f"vertex_type key, code_bytes b, {_VERTEX_BYTES}",
    "instrumentation_settings": """compute i, compute_level t?, external_exchange i,
        control_flow i""",
    "memory_by_tile": """tile key, interleaved i, interleaved_including_gaps i,
        non_interleaved i, non_interleaved_including_gaps i, overflowed i,
        overflowed_including_gaps i, total i, total_including_gaps i,
        always_live_bytes i, not_always_live_max_bytes i?""",
    "memory_liveness_tiles": "position key, tile i?",
    "string_table": "id key, string t?",
    "debug_ids": "variable_id i?, ids b?",
    "compilation_parameters": f"name t?, {_PARAMETERS} | name",
    "target_parameters": f"name t?, {_PARAMETERS} | name",
    "depth_first_steps": "id key, program_id i, parent_step_id i?",
    "memory_not_always_live_by_step_and_ipu": "ipu i?, step_id i, delta_bytes i",
    "compilation_cycles_by_tile": "id key, cycles_by_tile_rle b?",
    "var_categories": "id key, name t, description t",
    "vars_info": """var_id key, tile i, name_base_id i, name_prefix__vertex_field_ i?,
        name_suffix t, size_bytes i, alignment i, offset i, category i,
        equivalence_class i, element_constraints b?, region_constraints b?,
        unlowered_var_id i?, bitset i""",
    "equivalence_class_interference": "class_id i, interference_class_ids b",
    "allocation_order_by_tile": "tile i, order b",
    "compilation_info": "compilation_id t",
    "eq_classes": "id key, is_always_live i",
    "var_bytes_by_eq_class": "unlowered_var_id i, eq_class_id i, bytes i, tile i?",
    "eq_class_step": "eq_class_id i, step_id_from i, step_id_to i",
    "unlowered_vars": "id key, name t",
    "vars_string_table": "id key, string t",
    "compilation_steps": "id key, name t",
}

# Written whether the program ran or not; a genuine file has them once it ran.
EXECUTION_TABLES = {
    "steps": """id key, type t, program i?, sync_type t?, host_exchange i?,
        inter_ipu_exchange i?, exchange i?, compute_set i?""",
    "cycles_by_tile": "id key, cycles_by_tile_rle b",
    "steps_by_ipu": """step_id i, ipu i, cycles_base i, active_cycles_from_max i,
        active_cycles_from_mean i, active_cycles_from_min i, active_cycles_to_max i,
        active_cycles_to_mean i, active_cycles_to_min i, all_cycles_to_max i,
        all_cycles_to_mean i, all_cycles_to_min i, cycles i, active_tiles i,
        active_tile_balance r, thread_balance r?, tile_balance r, tile_cycles_id i?
        | step_id, ipu""",
    "vertices": "vertex_id key, compute_set_id i, vertex_type i, cycles i",
    "compute_set_cycles_by_tile": "compute_set_id key, cycles_by_tile_ids b",
    "compute_set_cycles_by_ipu": "compute_set_id key, cycles_by_ipu_rle b",
    "inter_ipu_exchange_cycles_by_tile": """inter_ipu_exchange_id key,
        exchange_cycles_by_tile_ids b, sync_cycles_by_tile_ids b""",
    "runs": """id key, start_epoch_time_microseconds i, elapsed_microseconds i?,
        name t, num_programs i, num_steps i, estimated_freq_by_ipu b?,
        start_cycles_by_ipu b?, end_cycles_by_ipu b?""",
    "program_trace": "id key, program_id i",
    "execution_cycle_totals": """run_id i?, cycles i, tile_cycles_active_compute i,
        tile_cycles_compute i, tile_cycles_internal_exchange i,
        tile_cycles_inter_ipu_exchange i, tile_cycles_stream_copy i,
        tile_cycles_stream_copy_begin i, tile_cycles_stream_copy_end i,
        tile_cycles_sync i, tile_overhead_cycles_active_compute i,
        tile_overhead_cycles_compute i, tile_overhead_cycles_internal_exchange i,
        tile_overhead_cycles_inter_ipu_exchange i, tile_overhead_cycles_stream_copy i,
        tile_overhead_cycles_stream_copy_begin i,
        tile_overhead_cycles_stream_copy_end i, tile_overhead_cycles_sync i""",
    "execution_parameters": f"name t, {_PARAMETERS}, run i? | name, run",
    "execution_info": "compilation_id t",
    "absolute_markers": """id key, cycles_from i, cycles_length i, step_id_by_tile b,
        cycles_by_tile b""",
    "blocks": "tile i, cycles_from i, cycles_to i, block_id i?, type i",
}

# Other readers of the format look tables up by name and ignore these.
POPPLE_TABLES = {
    "popple_info": "key t, value x | key",
    "popple_operations": """id key, name t, kind t, family t, phase t, chip i?,
        stage i?, module t, source_line t, cycles i, compute_cycles i,
        exchange_cycles i, link_cycles i, host_cycles i, sync_cycles i, flops i,
        num_executions i, num_vertices i, bound_by t, limited_by t, remark t,
        rule t, memory_bytes i, temporary_bytes i, plan_json t, framework_op t""",
    "popple_chip_time": """chip key, compute_cycles i, exchange_cycles i,
        link_cycles i, host_cycles i, sync_cycles i, bubble_cycles i""",
    "popple_memory_roles": "chip i, tile i, role t, num_bytes i",
    "popple_case": "text t",
    "popple_timeline": """chip i, start_cycles i, end_cycles i, label t, phase t,
        stage i?, micro_batch i?""",
    "popple_graph": "text t",
    "popple_generic_ops": "framework_op t, count i | framework_op",
    "popple_step_names": "step_id key, name t",
    "popple_variables": """unlowered_var_id i, eq_class_id i, chip i?, bytes i,
        bytes_by_tile_rle b""",
}

TABLES = {**COMPILATION_TABLES, **EXECUTION_TABLES, **POPPLE_TABLES}

_INDEXES = (
    "CREATE UNIQUE INDEX debug_ids_by_variable ON debug_ids (variable_id)",
    "CREATE INDEX memory_not_always_live_by_ipu"
    " ON memory_not_always_live_by_step_and_ipu (ipu)",
    "CREATE INDEX block_cycles_from ON blocks (tile, cycles_from)",
    "CREATE INDEX block_cycles_to ON blocks (tile, cycles_to)",
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make every table of a report in an empty database."""
    for name, columns in TABLES.items():
        connection.execute(_create_statement(name, columns))
    for statement in _INDEXES:
        connection.execute(statement)


def _create_statement(table: str, columns: str) -> str:
    listed, _, key = columns.partition("|")
    clauses = [_column_clause(pair) for pair in listed.split(",")]
    if key:
        clauses.append(f"PRIMARY KEY ({key.strip()})")
    return f"CREATE TABLE {table} ({', '.join(clauses)})"


def _column_clause(pair: str) -> str:
    name, kind = pair.split()
    if kind == "key":
        return f'"{name}" INTEGER PRIMARY KEY'
    null = "" if kind.endswith("?") else " NOT NULL"
    return f'"{name}" {_KINDS[kind.rstrip("?")]}{null}'
