"""The built-in files: complete, sourced, and true where truth can be checked."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import popple.target
from popple.target import Chip, System, list_chips, list_systems, load_system
from popple.target.document import read_document
from popple.target.schema import specs_of

DATA = Path(popple.target.__file__).parent / "data"
FILES = sorted(DATA.rglob("*.toml"))
WORDS = {"name", "base", "chip", "aliases", "device_order"}
PROFILE = Path(__file__).parents[2] / ".." / "shared" / "facts" / "profiles" / "pi.pop"

# Constants of `Chip` and the columns of a profile that hold the same number.
PROFILE_COLUMNS = {
    "num_tiles": "tiles_per_ipu",
    "num_workers": "numWorkerContexts",
    "clock_hz": "clock_frequency",
    "tile_memory_bytes": "bytes_per_tile",
    "interleaved_start_bytes": "interleavedMemoryStart",
    "tile_memory_base_address": "tileMemoryBaseAddress",
    "data_path_bits": "dataPathWidth",
    "atomic_store_bytes": "atomicStoreGranularity",
    "instruction_bytes": "instructionBytes",
    "memcpy_bytes_per_cycle": "memcpyBytesPerCycle",
    "exchange_bytes_per_cycle": "exchangeBytesPerCycle",
    "tiles_per_exchange_bus": "tilesPerSuperTile",
    "global_exchange_packet_bytes": "globalExchangePacketBytes",
    "fp16_in_fp16_out_conv_units": "fp16InFp16OutConvUnitsPerTile",
    "fp16_in_fp32_out_conv_units": "fp16InFp32OutConvUnitsPerTile",
    "fp32_in_fp32_out_conv_units": "fp32InFp32OutConvUnitsPerTile",
    "fp8_in_fp16_out_conv_units": "fp8InFp16OutConvUnitsPerTile",
    "fp8_conv_unit_load_elements": "fp8ConvUnitInputLoadElemsPerCycle",
    "fp16_conv_unit_load_elements": "fp16ConvUnitInputLoadElemsPerCycle",
    "fp32_conv_unit_load_elements": "fp32ConvUnitInputLoadElemsPerCycle",
    "fp8_conv_unit_pipeline_depth": "fp8ConvUnitMaxPipelineDepth",
    "fp16_conv_unit_pipeline_depth": "fp16ConvUnitMaxPipelineDepth",
    "fp32_conv_unit_pipeline_depth": "fp32ConvUnitMaxPipelineDepth",
    "conv_unit_max_coeff_load_bytes_per_cycle": "convUnitCoeffLoadBytesPerCycle",
    "rpt_count_max": "rptCountMax",
    "num_stride_bits": "numStrideBits",
    "max_run_offset_bytes": "maxImmediateOffsetInRunInstr",
    "min_sync_delay_cycles": "min_sync_delay",
    "global_sync_cycles": "globalSyncCycles",
    "supervisor_fetch_delay_cycles": "supervisorInstrFetchDelay",
    "worker_fetch_delay_cycles": "workerInstrFetchDelay",
    "tile_local_sync_delay_cycles": "tileLocalSyncSyncDelay",
    "tile_local_exit_delay_cycles": "tileLocalSyncExitDelay",
}


def constants_in(path: Path) -> dict[str, Any]:
    table = read_document(path).table
    return {key: raw for key, raw in table.items() if key not in WORDS}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_constant_has_value_unit_and_source(path: Path) -> None:
    for key, raw in constants_in(path).items():
        assert set(raw) == {"value", "unit", "source"}, key
        assert len(raw["source"]) > 5, key


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_units_are_those_of_the_classes(path: Path) -> None:
    specs = specs_of(Chip) | specs_of(System)
    for key, raw in constants_in(path).items():
        assert raw["unit"] == specs[key].unit, key


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_named_after_what_it_describes(path: Path) -> None:
    assert f'name = "{path.stem}"' in path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("part", [*list_chips(), *list_systems()])
def test_every_loaded_constant_keeps_its_source(part: Chip | System) -> None:
    assert set(dict(part.sources)) == set(specs_of(type(part)))


def test_all_promised_systems_exist() -> None:
    pods = [f"{p}pod{n}" for p in ("", "bow-") for n in (4, 16, 64, 128, 256)]
    cards = ["c2", "c600", "c600x2", "c600x4", "c600x8"]
    machines = ["dss8440", "m2000", "bow-2000"]
    chips = ["gc2", "gc200", "bow"]
    found = [system.name for system in list_systems()]
    assert sorted(found) == sorted([*pods, *cards, *machines, *chips])


@pytest.mark.parametrize("system", list_systems(), ids=lambda system: system.name)
def test_the_number_in_a_name_is_the_number_of_chips(system: System) -> None:
    found = system.name.rpartition("pod")[2] if "pod" in system.name else None
    found = system.name.partition("x")[2] if "c600x" in system.name else found
    assert found is None or int(found) == system.num_chips


@pytest.mark.parametrize(
    ("chip", "bits", "teraflops"),
    # Quoted peaks: C2 card, M2000 and Bow-2000 per chip, C600 datasheet.
    [
        ("gc2", 16, 124.5),
        ("gc200", 16, 250),
        ("bow", 16, 350),
        ("c600", 16, 280),
        ("c600", 8, 560),
    ],
)
def test_conv_units_give_the_quoted_peak(
    chip: str, bits: int, teraflops: float
) -> None:
    data = load_system(chip).chip
    units: int = getattr(data, f"fp{bits}_in_fp16_out_conv_units")
    elements: int = getattr(data, f"fp{bits}_conv_unit_load_elements")
    # A multiply-add is two floating-point operations.
    peak = 2 * units * elements * data.num_tiles * data.clock_hz
    assert peak == pytest.approx(teraflops * 1e12, rel=0.02)


@pytest.mark.skipif(
    not PROFILE.exists(), reason="no genuine profile beside the project"
)
def test_bow_is_the_chip_of_a_genuine_profile() -> None:
    bow = load_system("bow").chip
    with sqlite3.connect(f"file:{PROFILE.resolve()}?immutable=1", uri=True) as database:
        columns = ", ".join(PROFILE_COLUMNS.values())
        row = database.execute(f"SELECT {columns} FROM target_info").fetchone()
    database.close()
    found = {key: getattr(bow, key) for key in PROFILE_COLUMNS}
    assert found == dict(zip(PROFILE_COLUMNS, row, strict=True))
