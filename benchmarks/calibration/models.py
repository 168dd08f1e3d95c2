"""Models: throughput of whole models, as their configurations say it in words.

ResNet-50, BERT and ViT are expressed; the others have no module here. What a row does
not say (how a model is split over chips, how many sequences are packed) is not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.calibration.bert import (
    Bert,
    Form,
    Pretraining,
    Shape,
    Vit,
    with_dtype,
)
from benchmarks.calibration.published import MODELS, Published, published_rows
from benchmarks.calibration.resnet import ResNet50, Training
from benchmarks.calibration.rows import NotExpressed, Row, Rows
from benchmarks.calibration.runs import Run, model_run

THROUGHPUT = "throughput"
_IMAGE = 224
_SIZES = {"Base": (12, 768, 12), "Large": (24, 1024, 16)}
_MASKED_SHARE = 0.15
_DROPOUT = 0.1


def model_rows(facts: Path) -> Iterator[Rows]:
    """The published throughputs of models."""
    for each in published_rows(facts):
        if each.kind != MODELS:
            continue
        group, model = _model_of(each)
        row = Row(each.name, group, each.chip, THROUGHPUT, each.value)
        yield Rows((row,), partial(_figures, each, model))


def _model_of(row: Published) -> tuple[str, Callable[[Published], float]]:
    words = row.workload
    is_training = "training" in f"{words} {row.metric}"
    kind = "training" if is_training else "inference"
    for name, model in _MODELS.items():
        if words.startswith(name[0]) and kind == name[1]:
            return " ".join(name), model
    return "other", _refuse


def _figures(
    row: Published, model: Callable[[Published], float]
) -> Mapping[str, float]:
    row.check_value()
    if row.chip == "?":
        raise NotExpressed("the row does not say which chip")
    return {THROUGHPUT: model(row)}


def _refuse(row: Published) -> float:
    raise NotExpressed(f"no module of {row.workload!r}")


def resnet_inference(row: Published) -> float:
    """Images a second of one chip."""
    batch = _batch_of(row)
    dtype = torch.uint8 if "8-bit IO" in row.config else torch.float16
    images = torch.zeros(batch, 3, _IMAGE, _IMAGE, dtype=dtype)
    return _inference(row, ResNet50().half(), (images,))


def vit_inference(row: Published) -> float:
    """Images a second of one chip."""
    images = torch.zeros(_batch_of(row), 3, _IMAGE, _IMAGE, dtype=torch.float16)
    patch = int(row.find(r"/(\d+)", row.workload)[1])
    sequence = (_IMAGE // patch) ** 2 + 1
    size = row.find(r"ViT-(\w+)", row.workload)[1]
    module = Vit(_shape(size, sequence), Form(), patch).half()
    return _inference(row, module, (images,))


def bert_inference(row: Published) -> float:
    """Sequences a second of one chip."""
    return bert_figures(_bert_of(row), row.chip).samples_per_second


@dataclass(frozen=True)
class SquadBert:
    """BERT that finds answers in texts, for one batch."""

    shape: Shape
    form: Form
    batch: int
    dtype: torch.dtype


@dataclass(frozen=True)
class Figures:
    """What is asked of a modelled run."""

    samples_per_second: float
    fits: bool


def _bert_of(row: Published) -> SquadBert:
    """The BERT of a row.

    Rows that name a file, such as `bert_fp16`, are of graphcore/PopRT examples/bert,
    where norms and GELU are not converted to half numbers.
    """
    if "pack" in row.workload:
        raise NotExpressed("how many sequences are in a pack is not said")
    found = row.find(r"BERT-(\w+) .*SL(\d+)", row.workload)
    config = row.config.lower()
    is_file = "bert_fp" in config
    form = Form(
        has_fp8="fp8" in config,
        has_gelu=not is_file or "with_gelu" in config,
        has_float_norms=is_file,
    )
    dtype = torch.float32 if "fp32" in config else torch.float16
    return SquadBert(_shape(found[1], int(found[2])), form, _batch_of(row), dtype)


@cache
def bert_figures(bert: SquadBert, chip: str) -> Figures:
    """Throughput of one chip, and whether it is large enough."""
    module = with_dtype(Bert(bert.shape, bert.form), bert.dtype)
    ids = torch.zeros(bert.batch, bert.shape.sequence, dtype=torch.int32)
    run = Run(module, (ids, ids, ids.float()))
    modelled = model_run(run, chip)
    return Figures(modelled.samples_per_second, modelled.simulation.fits)


def bert_fits(row: Published) -> bool:
    """Whether the BERT of a row fits into one chip."""
    return bert_figures(_bert_of(row), row.chip).fits


def resnet_training(row: Published) -> float:
    """Images a second of all replicas, one chip each."""
    micro_batch, accumulation = _images_by_chip(row)
    images = torch.zeros(micro_batch, 3, _IMAGE, _IMAGE, dtype=torch.uint8)
    labels = torch.zeros(micro_batch, dtype=torch.int64)
    run = Run(
        Training(ResNet50()).half(),
        (images, labels),
        accumulation=accumulation,
        num_replicas=row.num_chips,
        optimizer="SGD",
    )
    return model_run(run, _system(row)).samples_per_second


def bert_training(row: Published) -> float:
    """Sequences a second of all replicas, each a pipeline of chips."""
    found = row.find(r"BERT-(\w+) .*SL(\d+)", row.workload)
    shape = _shape(found[1], int(found[2]))
    layers = _layers_by_chip(row, shape.num_layers)
    micro_batch = int(row.find(r"mbs (\d+)")[1])
    num_replicas = row.num_chips // len(layers)
    pipeline = BertPipeline(
        shape,
        layers,
        micro_batch,
        _accumulation(row, micro_batch * num_replicas),
        num_replicas,
        _memory_proportions(row, len(layers)),
    )
    return _sequences_by_pack(row) * pipeline_rate(pipeline, _system(row))


@dataclass(frozen=True)
class BertPipeline:
    """BERT that is trained by replicas, each a pipeline of chips."""

    shape: Shape
    layers_by_chip: tuple[int, ...]
    micro_batch: int
    accumulation: int
    num_replicas: int
    memory_proportions: tuple[float, ...]


@cache
def pipeline_rate(pipeline: BertPipeline, system: str) -> float:
    """Samples a second of all replicas."""
    shape, layers = pipeline.shape, pipeline.layers_by_chip
    run = Run(
        Pretraining(shape, Form(dropout=_DROPOUT), layers).half(),
        _pretraining_inputs(shape, pipeline.micro_batch),
        accumulation=pipeline.accumulation,
        num_replicas=pipeline.num_replicas,
        chips_by_replica=len(layers),
        optimizer="LAMB",
        memory_proportions=pipeline.memory_proportions,
    )
    return model_run(run, system).samples_per_second


_MODELS: Mapping[tuple[str, str], Callable[[Published], float]] = {
    ("ResNet-50", "inference"): resnet_inference,
    ("ViT", "inference"): vit_inference,
    ("BERT", "inference"): bert_inference,
    ("ResNet-50", "training"): resnet_training,
    ("BERT", "training"): bert_training,
}


def _inference(row: Published, module: nn.Module, inputs: tuple[Tensor, ...]) -> float:
    return model_run(Run(module, inputs), row.chip).samples_per_second


def _batch_of(row: Published) -> int:
    return int(row.find(r"bs ?(\d+)")[1])


def _shape(size: str, sequence: int) -> Shape:
    if size not in _SIZES:
        raise NotExpressed(f"the sizes of {size} are not known")
    return Shape(*_SIZES[size], sequence)


def _system(row: Published) -> str:
    prefix = {"bow": "bow-", "gc200": ""}
    if row.chip not in prefix:
        raise NotExpressed(f"no system of {row.num_chips} {row.chip} chips")
    return f"{prefix[row.chip]}pod{row.num_chips}"


def _images_by_chip(row: Published) -> tuple[int, int]:
    """Images of a micro-batch, and micro-batches for each update."""
    if "GBS" in row.config and " x " in row.config:
        found = row.find(r"= (\d+) x (\d+) x (\d+)")
        return int(found[2]), int(found[3])
    return int(row.find(r"mbs (\d+)")[1]), int(row.find(r"GA (\d+)")[1])


def _layers_by_chip(row: Published, num_layers: int) -> tuple[int, ...]:
    """As listed, else as many for each chip of a replica."""
    try:
        listed = row.find(r"(?:layers(?:/IPU)?|IPUs/replica) \[([\d,]+)\]")[1]
    except NotExpressed:
        num_chips = int(row.find(r"(\d+) IPUs/replica")[1])
        whole, rest = divmod(num_layers, num_chips)
        late = num_chips - rest
        return tuple(whole + (chip >= late) for chip in range(num_chips))
    return tuple(int(count) for count in listed.split(","))


def _accumulation(row: Published, micro_batches: int) -> int:
    """Micro-batches of each update, as said or as the global batch has it."""
    try:
        return int(row.find(r"grad accum (\d+)")[1])
    except NotExpressed:
        return round(int(row.find(r"GBS (\d+)")[1]) / micro_batches)


def _sequences_by_pack(row: Published) -> float:
    if "packed" not in row.workload:
        return 1.0
    return float(row.find(r"(?:avg|packing factor) ([\d.]+)")[1])


def _memory_proportions(row: Published, num_chips: int) -> tuple[float, ...]:
    """Proportions of each chip; the planner's own where the row says nothing clear."""
    try:
        listed = row.find(r"AMP \[?((?:[\d.]+,?)+)\]?(?!\d|-)")[1]
    except NotExpressed:
        return ()
    found = [float(each) for each in listed.strip(",").split(",") if each.strip(".")]
    return tuple(found * num_chips if len(found) == 1 else found)


def _pretraining_inputs(shape: Shape, micro_batch: int) -> tuple[Tensor, ...]:
    masked = math.ceil(_MASKED_SHARE * shape.sequence)
    ids = torch.zeros(micro_batch, shape.sequence, dtype=torch.int32)
    places = torch.zeros(micro_batch, masked, dtype=torch.int64)
    goals = torch.zeros(micro_batch, masked + 1, dtype=torch.int64)
    return ids, ids.clone(), torch.ones(ids.shape), places, goals
