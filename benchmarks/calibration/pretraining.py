"""Pretraining of BERT by replicas, each a pipeline of chips.

A row says how large the model is, in which framework it is written and on how many
chips it runs; how it is set up is in the public configuration of that program
(`configurations.PUBLIC`). A row of a program without one is read by its own words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import cast

import torch
from torch import Tensor

import popple
from benchmarks.calibration.bert import Form, Layer, Pretraining, Shape, Stage
from benchmarks.calibration.configurations import (
    PAIRS,
    PAIRS_BY_LAYER,
    PUBLIC,
    Checkpoints,
    Settings,
    read_settings,
)
from benchmarks.calibration.published import Published
from benchmarks.calibration.rows import NotExpressed
from benchmarks.calibration.runs import Run, model_run

_SIZES = {"Base": (12, 768, 12), "Large": (24, 1024, 16)}
_SYSTEMS = {"bow": "bow-", "gc200": ""}
_FRAMEWORKS = ("PyTorch", "PopART", "TensorFlow2", "TF1")
# How programs of graphcore/examples keep sequences of one pack apart; no others pack
# (nlp/bert/pytorch/modeling.py:251, nlp/bert/popart/utils/packed_bert_utils.py:66).
_MASKS = {"PyTorch": PAIRS, "PopART": PAIRS_BY_LAYER}
_DROPOUT = 0.1
_MASKED = {128: 20, 384: 56, 512: 76}
_PACKED = {128: 1.17, 384: 1.7, 512: 2.0}
_LONG = 512
"""Micro-batches of an update that is not said: more than any pipeline has stages"""
_WIDE = 64
"""Chips from which on programs have configurations of their own"""
_EVALUATED = 10_000
"""Sequences of a validation (MLPerf's rules for BERT)"""
_BETWEEN_RUNS = 0.17
"""Seconds from one run of a program on PopART to the next, each of which is a step.

Logs of MLPerf v2.0 (mlcommons/training_results_v2.0, Graphcore) have steps of 0.618,
0.485 and 0.362 s for 96, 64 and 36 micro-batches, on 8, 16 and 32 replicas: by a
straight line 0.21 s for none, of which 0.04 s fill and drain the pipeline and update.
"""


@dataclass(frozen=True)
class BertPipeline:
    """BERT that is trained by replicas, each a pipeline of chips."""

    shape: Shape
    settings: Settings
    accumulation: int
    num_replicas: int


def bert_training(row: Published) -> float:
    """Sequences a second of all replicas, each a pipeline of chips."""
    pipeline = pipeline_of(row)
    modelled = model_pipeline(pipeline, system_of(row))
    by_pack = _sequences_by_pack(row)
    num_packs = pipeline.settings.micro_batch * pipeline.accumulation
    num_packs *= pipeline.num_replicas
    seconds = num_packs / modelled.samples_per_second + seconds_between_runs(row)
    share = training_share(row, round(num_packs * by_pack))
    return by_pack * num_packs / seconds * share


def seconds_between_runs(row: Published) -> float:
    """What a step takes besides what is modelled, where published figures tell it."""
    is_on_popart = row.config.startswith("PopART") or bool(_round_of(row))
    return _BETWEEN_RUNS if is_on_popart else 0.0


def training_share(row: Published, batch: int) -> float:
    """Share of training in the time from one evaluation of MLPerf to the next.

    Rounds before v2.0 validate by steps of training with a learning rate of zero
    (mlcommons/training_results_v1.1, Graphcore bert.py:1247-1258; their logs show the
    time of four steps after each 57), later ones by forward passes, 1 to 2 % of it.
    """
    if not _round_of(row).startswith("v1"):
        return 1.0
    num_steps = sequences_between_evaluations(batch) / batch
    return num_steps / (num_steps - (-_EVALUATED // batch))


def sequences_between_evaluations(batch: int) -> int:
    """A share of the sequences that a run may take, in whole 25,000 (bert.py:888)."""
    return int(0.05 * (230.23 * batch + 3_000_000)) // 25_000 * 25_000


def pipeline_of(row: Published) -> BertPipeline:
    """The pipeline of a row."""
    words = _words_of(row)
    settings = read_settings(words)
    size, length = _size_of(row)
    num_replicas = row.num_chips // settings.num_chips
    micro_batches = settings.micro_batch * num_replicas
    accumulation = settings.accumulation or _accumulation(row, micro_batches)
    shape = shape_of(size, length, settings.vocabulary)
    return BertPipeline(shape, settings, accumulation, num_replicas)


def _size_of(row: Published) -> tuple[str, int]:
    """Base or Large, and how long sequences are; those of MLPerf are 512."""
    size = row.find(r"BERT-(\w+)", row.workload)[1]
    length = re.search(r"SL(\d+)", row.workload)
    if length is None and _round_of(row):
        return size, 512
    return size, int(row.find(r"SL(\d+)", row.workload)[1])


def _round_of(row: Published) -> str:
    found = re.search(r"mlperf_?(v\d\.\d)", row.name)
    return found[1] if found else ""


def _words_of(row: Published) -> str:
    """The text of the public configuration, else of the row."""
    if words := PUBLIC.get(f"{_round_of(row)} {row.num_chips}"):
        return words
    size, length = _size_of(row)
    framework = next((f for f in _FRAMEWORKS if row.config.startswith(f)), "PyTorch")
    key = f"{framework} {size} {length}"
    packed = f"{key} packed" if "packed" in row.workload else ""
    wide = f"{key} wide" if row.num_chips >= _WIDE else ""
    found = (PUBLIC[name] for name in (packed, wide, key) if name in PUBLIC)
    words = next(found, row.config)
    return f"{words}, {_MASKS.get(framework, '')}" if packed else words


def bert_run(model: str, words: str, num_chips: int) -> Run:
    """Pretraining of a model on so many chips, set up as the words say."""
    if "packed" in f"{model} {words}":  # programs on PopART, all of them
        words = f"{words}, {PAIRS_BY_LAYER}"
    settings = read_settings(words)
    size = re.search(r"BERT-(\w+)", model)
    length = re.search(r"SL(\d+)", f"{model} {words}")
    if size is None:
        raise NotExpressed(f"{model!r} does not say how large it is")
    sequence = int(length[1]) if length else 512
    shape = shape_of(size[1], sequence, settings.vocabulary)
    num_replicas = num_chips // settings.num_chips
    accumulation = settings.accumulation or _LONG
    return _run(BertPipeline(shape, settings, accumulation, num_replicas))


@cache
def model_pipeline(pipeline: BertPipeline, system: str) -> popple.Modelled:
    """What popple models of all replicas."""
    return model_run(_run(pipeline), system)


def _run(pipeline: BertPipeline) -> Run:
    settings = pipeline.settings
    return Run(
        pretraining_module(pipeline.shape, settings).half(),
        _pretraining_inputs(pipeline.shape, settings.micro_batch),
        accumulation=pipeline.accumulation,
        num_replicas=pipeline.num_replicas,
        chips_by_replica=settings.num_chips,
        optimizer="LAMB",
        moments=settings.moments,
        memory_proportions=settings.proportions,
        has_states_off_chip=settings.has_states_off_chip,
        has_shared_updates=settings.has_shared_updates,
        has_merged_collectives=settings.has_merged_collectives,
        has_stable_norms=settings.has_stable_norms,
        has_passes_apart=settings.has_passes_apart,
    )


def pretraining_module(shape: Shape, settings: Settings) -> Pretraining:
    """The model that a program trains, its layers where the settings say."""
    # All public programs multiply scores by 1 / sqrt(size): bert_model.py of PopART
    # and of MLPerf, Paddle's and TensorFlow 1's modeling.py, bert_fused_attention.py
    # of PyTorch, ipu_self_attention.py of TensorFlow 2.
    form = Form(
        dropout=_DROPOUT,
        has_divided_scores=False,
        has_attention_dropout=settings.has_attention_dropout,
        has_separate_weights=settings.has_separate_weights,
        masks=settings.masks,
    )
    module = Pretraining(shape, form, settings.stages, settings.parts)
    _mark_checkpoints(module, settings.stages, settings.checkpoints)
    return module


def _mark_checkpoints(
    module: Pretraining, stages: tuple[Stage, ...], kept: Checkpoints
) -> None:
    """Which halves of layers recomputation starts from."""
    if kept is Checkpoints.LAYERS:
        return
    layers = cast("list[Layer]", list(module.bert.layers))
    first = 0
    for stage in stages:
        first += stage.num_halves
        # Heads follow in the same stage: the last layer is not the last of the stage.
        if first % 2 == 0 and first and not (stage is stages[-1] and stage.chip == 0):
            layers[first // 2 - 1].keeps_result = False
    if kept is Checkpoints.HALVES:
        begin = (first - stages[-1].num_halves + 1) // 2
        for layer in layers[begin:]:
            layer.keeps_attention = True


def shape_of(size: str, sequence: int, vocabulary: int = 30_522) -> Shape:
    """The sizes of a BERT or of an encoder like it."""
    if size not in _SIZES:
        raise NotExpressed(f"the sizes of {size} are not known")
    return Shape(*_SIZES[size], sequence, vocabulary)


def system_of(row: Published) -> str:
    """The pod with the chips of a row."""
    if row.chip not in _SYSTEMS:
        raise NotExpressed(f"no system of {row.num_chips} {row.chip} chips")
    return f"{_SYSTEMS[row.chip]}pod{row.num_chips}"


def _said(row: Published, pattern: str) -> re.Match[str] | None:
    return re.search(pattern, row.config)


def _accumulation(row: Published, micro_batches: int) -> int:
    """Micro-batches of each update, as the global batch has it."""
    return round(int(row.find(r"GBS (\d+)")[1]) / micro_batches)


def _sequences_by_pack(row: Published) -> float:
    if "packed" not in row.workload and not _round_of(row):
        return 1.0
    if said := _said(row, r"(?:avg|packing factor) ([\d.]+)"):
        return float(said[1])
    return _PACKED[_size_of(row)[1]]


def _pretraining_inputs(shape: Shape, micro_batch: int) -> tuple[Tensor, ...]:
    masked = _MASKED[shape.sequence]
    ids = torch.zeros(micro_batch, shape.sequence, dtype=torch.int32)
    places = torch.zeros(micro_batch, masked, dtype=torch.int64)
    goals = torch.zeros(micro_batch, masked + 1, dtype=torch.int64)
    return ids, ids.clone(), torch.ones(ids.shape), places, goals
