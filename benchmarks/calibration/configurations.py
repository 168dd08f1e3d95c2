"""Configurations: how published runs of BERT were set up, in words, and the words read.

In: a text such as "[3,7,7,7] x4, mbs 8, AMP [.15,.25x3], states off chip, RTS". Out:
`Settings`. `PUBLIC` has the texts of public configurations, each with the file it is
taken from; rows of tables bring texts of their own in the same words.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from benchmarks.calibration.bert import Masks, Stage
from benchmarks.calibration.rows import NotExpressed


class Checkpoints(enum.Enum):
    """Which results recomputation keeps."""

    LAYERS = "each layer"
    NOT_LAST = "each layer but the last of a chip"
    HALVES = "each layer but the last of a stage; in the last stage each half"


@dataclass(frozen=True)
class Settings:
    """How a program is spread over chips and what it keeps where.

    0 micro-batches for an update are what the size of the whole batch says; without
    proportions the planner has its own.
    """

    stages: tuple[Stage, ...]
    micro_batch: int
    accumulation: int
    proportions: tuple[float, ...]
    parts: int
    vocabulary: int
    moments: tuple[torch.dtype, torch.dtype]
    has_states_off_chip: bool
    has_shared_updates: bool
    has_attention_dropout: bool
    has_separate_weights: bool
    has_merged_collectives: bool
    checkpoints: Checkpoints
    masks: Masks
    has_stable_norms: bool
    has_passes_apart: bool

    @property
    def num_chips(self) -> int:
        """Chips of a replica."""
        return 1 + max(stage.chip for stage in self.stages)


# How the words say that sequences of one pack do not see each other.
PAIRS = "masks of pairs"
PAIRS_BY_LAYER = f"{PAIRS} by layer"

# What all configurations of a family share, said once: half accumulators (PyTorch:
# nlp/bert/pytorch/optimization.py:64; PopART: an accumulator has its weight's type
# unless told otherwise, graphcore/popart willow/src/adam.cpp:447), half partials.
_PYTORCH = "LAMB, states off chip, RTS, no attention dropout, vocabulary 30522"
_POPART = (
    "LAMB, states off chip, RTS, no attention dropout, vocabulary 30400, embedding in "
    "5 parts, checkpoint each layer but the last of a chip, split_qkv"
)
_TF2 = "LAMB, states off chip, no attention dropout, vocabulary 30400"
_MLPERF = (
    "LAMB, vocabulary 30912, embedding in 4 parts, checkpoint halves, RTS, "
    f"{PAIRS_BY_LAYER}"
)
_ON_EIGHT = (
    "attention/FFN chips 1-7 [2/2,3/3,4/3,3/4,4/3,3/4,4/3]; 1/2 and head on chip 0"
)
_ON_EIGHT_BOW = (
    "attention/FFN chips 1-7 [3/3,3/3,3/3,4/3,3/4,4/3,3/4]; 1/1 and head on chip 0, "
    "mbs 3, states on chip, both moments f16, attention dropout on, merged collectives"
)

PUBLIC: Mapping[str, str] = {
    # graphcore/examples v3.4.1, nlp/bert/pytorch/configs_pretraining.yml
    "PyTorch Base 128": f"[0,4,4,4], mbs 32, AMP .25, {_PYTORCH}",
    "PyTorch Base 512": f"[0,4,4,4], mbs 8, AMP .25, in 2 parts, {_PYTORCH}",
    "PyTorch Large 128": f"[3,7,7,7], mbs 8, AMP [.15,.25x3], in 2 parts, {_PYTORCH}",
    "PyTorch Large 512": f"[3,7,7,7], mbs 2, AMP [.10,.15x3], in 2 parts, {_PYTORCH}",
    "PyTorch Large 128 wide": (
        f"[3,7,7,7], mbs 8, AMP [.14,.19x3], in 2 parts, {_PYTORCH}"
    ),
    "PyTorch Large 512 wide": (
        f"[3,7,7,7], mbs 2, AMP [.13,.19x3], in 2 parts, {_PYTORCH}"
    ),
    # graphcore/examples v3.0.0, nlp/bert/popart/configs
    "PopART Base 128": f"[0,4,4,4], mbs 32, AMP .28, {_POPART}",
    "PopART Base 512": f"[0,4,4,4], mbs 8, AMP .28, {_POPART}",
    "PopART Large 128": f"[3,7,7,7], mbs 8, AMP [.15,.25x3], {_POPART}",
    "PopART Large 512": f"[3,7,7,7], mbs 2, AMP [.14,.19x3], {_POPART}",
    "PopART Large 512 packed": f"[3,7,7,7], mbs 2, AMP [.16,.21x3], {_POPART}",
    # graphcore/examples v3.4.1, nlp/bert/tensorflow2/configs
    "TensorFlow2 Base 128": f"[0,4,4,4], mbs 32, AMP [.28,.26,.28,.28], {_TF2}",
    "TensorFlow2 Large 128": f"[3,7,7,7], mbs 8, AMP [.10,.19,.20,.25], {_TF2}",
    "TensorFlow2 Large 128 wide": (
        f"[3,7,7,7], mbs 8, AMP [.1,.19,.2,.2], RTS, in 5 parts, {_TF2}"
    ),
    # graphcore/examples v3.0.0, nlp/bert/tensorflow1/configs and ipu_utils.py:56
    "TF1 Large 128": (
        f"[3,7,7,7], mbs 8, AMP [.15,.25x3], RTS, in 5 parts, {_TF2}, stable norms, "
        "passes apart"
    ),
    # mlcommons/training_results_v1.0, Graphcore/benchmarks/bert/implementations/popart/
    # configs/mk2/podN-closed.json; also v1.1
    "v1.0 16": (
        f"[3,7,7,7], mbs 2, GA 192, AMP [.20,.20,.25,.25], {_POPART}, {PAIRS_BY_LAYER}"
    ),
    "v1.0 64": (
        "[0,3,3,3,3,4,4,4], mbs 2, GA 96, AMP 1.0, LAMB, states on chip, RTS, no "
        "attention dropout, vocabulary 30400, embedding in 5 parts, split_qkv, "
        f"checkpoint each layer but the last of a chip, {PAIRS_BY_LAYER}"
    ),
    "v1.1 16": (
        "attention/FFN chips 1-3 [7/6,6/7,7/6]; 4/5 and head on chip 0, mbs 2, GA 192, "
        "AMP .23, states off chip, first moment f16, no attention dropout, split_qkv, "
        f"{_MLPERF}"
    ),
    "v1.1 64": (
        f"{_ON_EIGHT}, mbs 2, GA 96, AMP [.20,.25x7], states on chip, no attention "
        f"dropout, {_MLPERF}"
    ),
    "v1.1 128": (
        f"{_ON_EIGHT}, mbs 2, GA 96, AMP [.20,.25x7], states on chip, first moment "
        f"f16, no attention dropout, {_MLPERF}"
    ),
    # mlcommons/training_results_v2.0, .../popart/configs/podN-closed.json
    "v2.0 16": f"{_ON_EIGHT_BOW}, GA 256, AMP .3, {_MLPERF}",
    "v2.0 64": f"{_ON_EIGHT_BOW}, GA 96, AMP 1.0, {_MLPERF}",
    "v2.0 128": f"{_ON_EIGHT_BOW}, GA 64, AMP 1.0, {_MLPERF}",
    "v2.0 256": f"{_ON_EIGHT_BOW}, GA 36, AMP 1.0, {_MLPERF}",
}
"""Public configurations by framework, size and length, or by round and chips"""


# What is the same in all configurations of a program, and where that is said.
_COMMON: Mapping[str, str] = {
    "nlp/bert/pytorch": "vocabulary 30522",
    "nlp/bert/popart": "vocabulary 30400, split_qkv",
    "nlp/bert/tensorflow": "vocabulary 30400",
    # arguments.py:255, tools.py:337 and config/*.json
    "nlp/gpt2/pytorch": "states off chip, first moment f16, vocabulary 50272",
    # configs.yml:2 and args.py:178
    "vision/vit/pytorch": "states on chip, first moment f16, RTS",
}


def common_words(source: str) -> str:
    """What the configurations of the program at `source` have in common."""
    return next((said for name, said in _COMMON.items() if name in source), "")


def read_settings(words: str) -> Settings:
    """The settings that a text says; what it does not is as the stack has it."""
    stages = _stages(words)
    num_chips = 1 + max(stage.chip for stage in stages)
    return Settings(
        stages,
        micro_batch=_number(r"mbs (\d+)", words),
        accumulation=_number(r"(?:GA|grad accum) (\d+)", words, 0),
        proportions=_proportions(words, num_chips),
        parts=_number(r"(?:in|serialisation) (\d+)(?: parts)?\b(?! chips)", words, 1),
        vocabulary=_number(r"vocabulary (\d+)", words, 30_522),
        moments=_moments(words),
        has_states_off_chip=bool(re.search(r"states? (?:f32 )?off.chip", words)),
        has_shared_updates="RTS" in words and "no RTS" not in words,
        has_attention_dropout=bool(re.search(r"(?<!no )attention dropout", words)),
        has_separate_weights="split_qkv" in words,
        has_merged_collectives=bool(re.search(r"merged collect|ives merged", words)),
        checkpoints=_checkpoints(words),
        masks=_masks(words),
        has_stable_norms="stable norms" in words,
        has_passes_apart="passes apart" in words,
    )


def _stages(words: str) -> tuple[Stage, ...]:
    """Where halves of layers lie: on chips in order, or from the second chip on."""
    if halves := re.search(r"chips 1-\d \[([\d/,]+)\][;,] (\d+)/(\d+)", words):
        pairs = [tuple(map(int, pair.split("/"))) for pair in halves[1].split(",")]
        between = (Stage(chip, *pair) for chip, pair in enumerate(pairs, start=1))
        return Stage(0, 0, 0), *between, Stage(0, int(halves[2]), int(halves[3]))
    listed = re.search(r"\[((?:emb\+head|\d+)(?:,\d+(?:x\d+)?)+)\]", words)
    if listed is None:
        raise NotExpressed("the text does not say where layers lie")
    counts = _listed(listed[1].replace("emb+head", "0"))
    return tuple(Stage(chip, int(n), int(n)) for chip, n in enumerate(counts))


def _listed(text: str) -> list[float]:
    """Numbers of a list in which "a x n" stands for n times a."""
    found: list[float] = []
    for each in text.strip(",").split(","):
        number, _, times = each.strip().partition("x")
        found += [float(number)] * int(times or 1)
    return found


def _number(pattern: str, words: str, default: int | None = None) -> int:
    if found := re.search(pattern, words):
        return int(found[1])
    if default is None:
        raise NotExpressed(f"the text does not say {pattern}")
    return default


def _proportions(words: str, num_chips: int) -> tuple[float, ...]:
    said = re.search(r"AMP (?:\[([\d.,x]+)\]|(\d*\.\d+)(?![\d-]))", words)
    if said is None:
        return ()
    found = _listed(said[1] or said[2])
    return tuple(found * num_chips if len(found) == 1 else found)


def _moments(words: str) -> tuple[torch.dtype, torch.dtype]:
    half, single = torch.float16, torch.float32
    if re.search(r"both (?:moments )?f16", words):
        return half, half
    return (half if "first moment f16" in words else single), single


def _checkpoints(words: str) -> Checkpoints:
    if "checkpoint halves" in words:
        return Checkpoints.HALVES
    is_last_left_out = "but the last of a chip" in words
    return Checkpoints.NOT_LAST if is_last_left_out else Checkpoints.LAYERS


def _masks(words: str) -> Masks:
    if PAIRS_BY_LAYER in words:
        return Masks.PAIRS_BY_LAYER
    return Masks.PAIRS if PAIRS in words else Masks.POSITIONS
