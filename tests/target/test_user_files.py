"""Files of users: chips and systems that do not exist, and mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from popple.errors import TargetError
from popple.target import System, describe, load_system
from popple.target.library import list_chips

BOW_FILE = Path(__file__).parents[2] / "src/popple/target/data/chips/bow.toml"


class Files:
    """Writes TOML files into a fresh directory and loads them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def load(self, text: str, name: str = "mine.toml") -> System:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return load_system(path)

    def get_error(self, text: str) -> str:
        with pytest.raises(TargetError) as caught:
            self.load(text)
        return str(caught.value).replace(f"{self.directory}/", "")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_chip_on_a_base(files: Files) -> None:
    system = files.load('base = "bow"\nnum_tiles = 14_720\n')
    assert (system.name, system.chip.name, system.num_chips) == ("mine", "mine", 1)
    assert system.chip.num_tiles == 14_720
    assert system.chip.clock_hz == load_system("bow").chip.clock_hz


def test_a_chip_in_the_system_of_its_base(files: Files) -> None:
    system = files.load('name = "fat"\nbase = "pod16"\ntile_memory_bytes = 1_048_576\n')
    assert (system.name, system.num_chips) == ("fat", 16)
    assert system.chip.tile_memory_bytes == 1_048_576


def test_a_complete_chip_file_needs_no_base(files: Files) -> None:
    system = files.load(BOW_FILE.read_text(encoding="utf-8"))
    assert system.chip == load_system("bow").chip
    assert system == load_system("bow")


def test_a_system_of_a_built_in_chip(files: Files) -> None:
    text = 'base = "bow-pod64"\nchip = "gc200"\nnum_chips = 32\nrack_chips = 32\n'
    system = files.load(text)
    assert (system.num_chips, system.chip.name) == (32, "gc200")


def test_a_system_with_a_chip_of_its_own(files: Files) -> None:
    text = 'base = "pod16"\nhost_bytes_per_second = 1e9\n[chip]\nclock_hz = 2\n'
    system = files.load(text)
    assert system.chip.clock_hz == 2
    assert system.chip.num_tiles == load_system("gc200").chip.num_tiles
    assert system.host_bytes_per_second == 1e9


def test_a_chip_table_with_a_base_of_its_own(files: Files) -> None:
    system = files.load('base = "c600x4"\n[chip]\nbase = "bow"\nnum_tiles = 100\n')
    assert system.chip.fp8_in_fp16_out_conv_units == 0
    assert system.chip.num_tiles == 100


def test_tables_with_unit_and_source_are_read(files: Files) -> None:
    text = 'base = "bow"\nclock_hz = { value = 3, unit = "Hz", source = "a dream" }\n'
    files.load(text)
    rows = {row.name: row for row in describe(files.directory / "mine.toml")}
    assert (rows["clock_hz"].value, rows["clock_hz"].source) == (3, "a dream")
    assert "profile" in rows["num_tiles"].source


def test_a_plain_number_has_the_file_as_source(files: Files) -> None:
    files.load('base = "bow"\nclock_hz = 3\n')
    rows = {row.name: row for row in describe(str(files.directory / "mine.toml"))}
    assert rows["clock_hz"].source == "given in mine.toml"


def test_a_whole_number_will_do_for_a_rate(files: Files) -> None:
    system = files.load('base = "bow"\nhost_latency_ns = 5\n')
    assert isinstance(system.host_latency_ns, float)


def test_the_order_of_devices_is_kept_only_at_the_same_size(files: Files) -> None:
    same = files.load('base = "dss8440"\nhost_latency_ns = 5\n')
    text = 'base = "dss8440"\nnum_chips = 8\nchips_per_machine = 8\nrack_chips = 8\n'
    assert same.device_order == load_system("dss8440").device_order
    assert files.load(text).device_order == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('base = "bow"\nclock_hz = \n', "mine.toml:2: This is not TOML: Invalid value"),
        ('base = "bow"\n\n[chip\n', "mine.toml:3: This is not TOML"),
        ('base = """bow\n\n', "mine.toml:2: This is not TOML"),
        ("", "mine.toml: Missing chip constants: architecture, num_tiles"),
        ('base = "bow"\nclock_hertz = 1\n', "mine.toml:2: Unknown key 'clock_hertz'."),
        ('base = "bow"\nclock_hertz = 1\n', "Did you mean 'clock_hz'"),
        ('base = "pod16"\nnum_chip = 8\n', "Did you mean 'num_chips'"),
        ('base = "pod16"\nnum_chips = 16\nhost_rate = 8\n', ":3: Unknown key"),
        ('base = "bo"\nnum_tiles = 8\n', "mine.toml:1: Unknown system 'bo'."),
        ('chip = "bwo"\nbase = "c2"\n', ":1: Unknown chip 'bwo'. Did you mean 'bow'"),
        ("chip = 3\nbase = 'c2'\n", "mine.toml:1: chip must be a name or a table."),
        ("base = 3\n", "mine.toml:1: base must be text, but is 3."),
        ('base = "bow"\nnum_tiles = -1\n', ":2: num_tiles must be positive"),
        ('base = "bow"\nnum_tiles = 1.5\n', ":2: num_tiles must be a whole number"),
        ('base = "bow"\nidle_watts = nan\n', ":2: idle_watts must be a number below"),
        ('base = "bow"\nnum_tiles = 9999999\n', ":2: num_tiles must be a number below"),
        ('base = "bow"\nclock_hz = 1850000000000000\n', "below 1e+12 Hz, but is 1850"),
        ('base = "bow"\ndata_path_bits = 3\n', ":2: data_path_bits must be 32 or more"),
        (
            'base = "bow"\nworker_stack_bytes = 500000\n',
            "tile_memory_bytes, 638976, does not hold the stacks",
        ),
        ('base = "bow"\noperand_bytes = 99999\n', "is above memory_element_bytes"),
        ('base = "bow"\nclock_hz = {value=2, unit="GHz"}\n', ":2: clock_hz is in Hz"),
        ('base = "bow"\nclock_hz = {unit="Hz"}\n', ":2: clock_hz has no value."),
        ('base = "bow"\nclock_hz = {val=2}\n', "Unknown key 'val' in clock_hz."),
        ('base = "pod16"\nnum_chips = 16\nnum_tiles = 8\n', "Put it into a [chip]"),
        ('base = "pod16"\n[chip]\n\nnum_tile = 8\n', ":4: Unknown key 'num_tile'."),
        ('base = "pod16"\naliases = "x"\nnum_chips = 16\n', "must be a list of str"),
        ('base = "pod16"\nnum_chips = 18\n', "mine.toml: mine: chips_per_machine, 4"),
        ("num_chips = 1\n", "Missing system constants: chips_per_machine"),
        ('base = "bow"\nname = "a/b"\nnum_tiles = 8\n', "'a/b' is no name"),
    ],
)
def test_mistakes_are_named_with_file_and_line(
    files: Files, text: str, message: str
) -> None:
    assert message in files.get_error(text)


def test_a_chip_table_must_be_complete_without_a_base(files: Files) -> None:
    everything = "\n".join(
        f"{row.name} = {row.value!r}"
        for row in describe("bow")
        if row.part.startswith("system")
    )
    message = files.get_error(f"{everything}\n[chip]\nnum_tiles = 4\n")
    assert "mine.toml: [chip]: Missing chip constants: architecture" in message
    assert "The system has no chip." in files.get_error(everything)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="Cannot read the target file"):
        load_system(tmp_path / "absent.toml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "image.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TargetError, match="Cannot read the target file"):
        load_system(path)


def test_user_files_do_not_join_the_built_in_ones(files: Files) -> None:
    before = list_chips()
    files.load('base = "bow"\nnum_tiles = 4\n')
    assert list_chips() == before
