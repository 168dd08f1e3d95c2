"""Fits: public runs that ran, and those that ran out of memory.

A table names for each run its program, the chips and in words how it was set up, with
the file that says so. In: the table. Out: rows of the quantity `fits`, with the fullest
tile of every chip beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import popple
from benchmarks.calibration.configurations import PUBLIC, common_words
from benchmarks.calibration.finetuning import squad_training, vit_training
from benchmarks.calibration.gpt2 import gpt2_training
from benchmarks.calibration.images import (
    clip_images,
    resnet_images,
    resnet_training,
    resnext_images,
    vit_images,
)
from benchmarks.calibration.models import answering_run
from benchmarks.calibration.pretraining import bert_run
from benchmarks.calibration.rows import FITS, NotExpressed, Row, Rows, read_csv
from benchmarks.calibration.runs import Run, model_run

FILE = "fits.csv"
_SIZES = ((1, "single chip"), (16, "4 to 16 chips"), (1 << 20, "64 and more chips"))
_MAKERS: Mapping[str, Callable[[str, str, int], Run]] = {
    r"BERT-\w+ pretraining": bert_run,
    r"BERT-\w+ SQuAD SL\d+ training": squad_training,
    r"BERT-\w+ (SQuAD )?inference": answering_run,
    r"ResNet-50 training": resnet_training,
    r"ResNet-50 inference": resnet_images,
    r"ResNeXt-50 .*inference": resnext_images,
    r"ViT-B/16 (fine-tuning|pretraining)": vit_training,
    r"ViT-B/16 inference": vit_images,
    r"CLIP .*inference": clip_images,
    r"GPT-2 \w+ SL\d+ training": gpt2_training,
}
"""How a run is made of what its table says: the model, the words, how many chips"""


@dataclass(frozen=True)
class Claim:
    """One run of the table."""

    name: str
    source: str
    chip: str
    num_chips: int
    model: str
    words: str
    fits: bool

    @property
    def system(self) -> str:
        """The machine that the run is modelled on: the first chip that is named."""
        chip = self.chip.split("/")[0].lower()
        pod = f"pod{self.num_chips}"
        systems = {"gc200": pod, "bow": f"bow-{pod}"}
        return chip if self.num_chips == 1 else systems.get(chip, chip)

    def run(self) -> Run:
        """What is modelled."""
        for pattern, make in _MAKERS.items():
            if re.match(pattern, self.model):
                return make(self.model, self.words, self.num_chips)
        raise NotExpressed(f"no module of {self.model!r}")


def fits_rows(facts: Path) -> Iterator[Rows]:
    """A row for each run of the table."""
    for claim in read_claims(facts):
        size = next(name for most, name in _SIZES if claim.num_chips <= most)
        chip = claim.chip.split("/")[0].lower()
        row = Row(claim.name, size, chip, FITS, float(claim.fits))
        yield Rows((row,), partial(_figures, claim))


def read_claims(facts: Path) -> list[Claim]:
    """The table, with what a row takes over from another one written out."""
    lines = read_csv(facts / FILE)
    words = {line["id"]: line["configuration"] for line in lines}
    return [
        Claim(
            line["id"],
            line["source"],
            line["chip"],
            int(line["ipus"]),
            line["model"],
            _all_words(line, words),
            line["fits"] == "yes",
        )
        for line in lines
    ]


def _all_words(line: Mapping[str, str], known: Mapping[str, str]) -> str:
    """The words of a row, then those of the rows and programs that it is like.

    The first that says something counts.
    """
    said = line["configuration"]
    if like := re.match(r"as (\w+)(?:,| with) (.*)", said):
        kind = "rn50" if "ResNet" in line["model"] else ""
        others = (n for n in known if n.startswith(like[1]) and kind in n)
        other = known.get(next(others, ""), "")
        said = f"{like[2]}, {other}"
    mlperf = re.search(r"training_results_(v\d\.\d)", line["source"])
    if mlperf and "BERT" in line["model"]:
        return PUBLIC.get(f"{mlperf[1]} {line['ipus']}", said)
    return f"{said}, {common_words(line['source'])}"


def _figures(claim: Claim) -> dict[str, float]:
    modelled = model_run(claim.run(), claim.system)
    return {FITS: float(modelled.simulation.fits), **_fills(modelled)}


def _fills(modelled: popple.Modelled) -> dict[str, float]:
    """The share of its fullest tile that is taken, of every chip."""
    size = modelled.target.chip.tile_memory_bytes
    peaks = modelled.simulation.memory.peak_by_chip
    return {f"chip {chip}": peak / size for chip, peak in enumerate(peaks)}
