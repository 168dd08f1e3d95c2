"""Built-in documents are strict, and keys are found where they stand."""

from __future__ import annotations

import pytest

from popple.errors import TargetError
from popple.target import Chip
from popple.target.document import parse_document, read_constants


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ("7", "unit"),
        ('{ value = 7, source = "a book" }', "unit"),
        ('{ value = 7, unit = "tiles" }', "source"),
        ('{ value = 7, unit = "tiles", source = "" }', "source"),
    ],
)
def test_strict_constants_need_unit_and_source(entry: str, missing: str) -> None:
    document = parse_document(f"num_tiles = {entry}", "chip.toml", strict=True)
    with pytest.raises(TargetError, match=f"^chip.toml:1: num_tiles has no {missing}"):
        read_constants(document, Chip)


def test_zero_is_a_value() -> None:
    text = "fp8_in_fp16_out_conv_units = { value = 0 }"
    values, _ = read_constants(parse_document(text, "chip.toml"), Chip)
    assert values == {"fp8_in_fp16_out_conv_units": 0}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("# clock_hz = 1\nclock_hz = 1", "f.toml:2"),
        ("my_clock_hz = 1\nclock_hz = 1", "f.toml:2"),
        ('"clock_hz" = 1', "f.toml:1"),
        ("[clock_hz]\nvalue = 1", "f.toml:1"),
        ("clock_hz.value = 1", "f.toml:1"),
        ("num_tiles = 1", "f.toml"),
        ("source = 'clock_hz = 1'\nclock_hz = 1", "f.toml:2"),
        ('source = """\nclock_hz = 1\n"""\n\n\nclock_hz = 1', "f.toml:6"),
        ("aliases = [\n  'a',\n]\nclock_hz = [\n  1,\n]", "f.toml:4"),
        ("other = { clock_hz = 1 }\nclock_hz = 1", "f.toml:2"),
        ("[other]\nclock_hz = 1\n[clock_hz]", "f.toml:3"),
        ("[clock_hz.value]\n[other]", "f.toml:1"),
        ("num_tiles = 1\r\n\r\nclock_hz = 1\r\n", "f.toml:3"),
        ("num_tiles = 1 # one\u2028\nclock_hz = 1", "f.toml:2"),
        ('"clock_\\u0068z" = 1', "f.toml:1"),
    ],
)
def test_locate(text: str, place: str) -> None:
    assert parse_document(text, "f.toml").locate("clock_hz") == place


def test_locate_inside_a_section() -> None:
    text = 'name = "outer"\n[chip]\nname = "inner"\n'
    document = parse_document(text, "f.toml")
    assert document.locate("name") == "f.toml:1"
    assert document.open_section("chip").locate("name") == "f.toml:3"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("chip = { name = 1, clock_hz = 1 }", "f.toml:1"),
        ("chip.name = 1\nchip.clock_hz = 1", "f.toml:2"),
        ("clock_hz = 1\n[chip]\nname = 1", "f.toml"),
    ],
)
def test_locate_inside_a_section_of_any_form(text: str, place: str) -> None:
    section = parse_document(text, "f.toml").open_section("chip")
    assert section.locate("clock_hz") == place
