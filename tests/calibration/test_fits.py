"""The table of runs that fit or do not: what its words say."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.calibration.configurations import read_settings
from benchmarks.calibration.fits import Claim, read_claims
from benchmarks.calibration.images import resnet_images, resnet_training
from benchmarks.calibration.rows import FITS, Row, Rows, render_table

DATA = Path(__file__).parent / "data"


def claim(name: str) -> Claim:
    return next(each for each in read_claims(DATA) if each.name == name)


def test_the_table_has_runs_of_all_sizes_and_of_both_kinds() -> None:
    claims = read_claims(DATA)
    training = [c for c in claims if c.fits and "inference" not in c.model]
    assert len(training) >= 25
    assert sum(c.num_chips >= 64 for c in training) >= 5
    assert any(not c.fits for c in claims)


def test_a_row_takes_over_what_it_does_not_say_itself() -> None:
    # Of the row it is like: the cuts and the proportion; its own: the micro-batch.
    run = resnet_training("", claim("mlperf20_rn50_pod16").words, 16)
    assert (len(run.inputs[0]), run.accumulation) == (22, 10)
    assert run.memory_proportions == (0.15,)


def test_a_program_adds_what_all_its_configurations_have() -> None:
    settings = read_settings(claim("gpt2_small_pt").words)
    assert settings.has_states_off_chip
    assert (settings.parts, settings.vocabulary) == (4, 50_272)


def test_images_that_arrive_beside_compute_are_bytes_on_tiles_of_their_own() -> None:
    run = resnet_images("", "FP16 overlapped IO, batch 2", 1)
    assert (run.num_io_tiles, run.inputs[0].element_size()) == (32, 1)
    run = resnet_images("", "FP16 synthetic data, batch 2", 1)
    assert (run.num_io_tiles, run.inputs[0].element_size()) == (0, 1)


@pytest.mark.parametrize(
    ("name", "system"),
    [("bert_large_128_pod64_pt", "bow-pod64"), ("vit_b16_inf_oom", "gc200")],
)
def test_a_run_is_modelled_on_its_machine(name: str, system: str) -> None:
    assert claim(name).system == system


def test_fills_stand_beside_the_verdict() -> None:
    row = Row("a", "single chip", "bow", FITS, 1.0)
    results = Rows((row,), lambda: {FITS: 1.0, "chip 0": 0.9}).results()
    assert list(render_table(results))[-1].split()[-3:] == ["chip", "0", "0.9"]
