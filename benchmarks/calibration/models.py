"""Models: throughput of whole models, as their configurations say it in words.

ResNet-50, BERT, ViT, Swin, CLIP and RoFormerV2 are expressed; the others have no
module here. What neither a row nor the program it is of says is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.calibration import roformer
from benchmarks.calibration.bert import Bert, Form, Shape, Vit, with_dtype
from benchmarks.calibration.clip import Clip
from benchmarks.calibration.packing import sequences_by_row
from benchmarks.calibration.pretraining import bert_training, shape_of, system_of
from benchmarks.calibration.published import MODELS, Published, published_rows
from benchmarks.calibration.resnet import ResNet50, Training
from benchmarks.calibration.roformer import RoFormer
from benchmarks.calibration.rows import NotExpressed, Row, Rows
from benchmarks.calibration.runs import Run, model_run
from benchmarks.calibration.swin import SwinTiny

THROUGHPUT = "throughput"
_IMAGE = 224
# Of graphcore/PopRT: benchmarks/bert and examples/bert.
_MEMORY_PROPORTIONS = {"Base": 0.4, "Large": 0.15}
_IO_TILES = 32
_WIDE_BATCH = 32
"""The batch of ViT for which its program asks for wide loads of weights"""
_FLOAT_BATCH = 128
"""The batch of BERT-Base whose norms and GELU stay in float"""
_HOST_BY_CALL = 126e-6
"""Seconds of a call that waits for its results beyond those of the device: shortest
latency of PopRT's ResNet-50 of batch 1, 447 us, less its 321 us from call to call"""
_HOST_BY_SEQUENCE = 30e-6
"""Seconds in which a server core makes lists of Python numbers of 512 of NumPy's"""
_LARGEST_TEXTS = 356
"""The batch of RoFormerV2 for which its program scales queries"""
_CUTS = (0, 2, 3, 5, 7, 10)
"""Blocks behind which the programs for MLPerf cut: b1/0 b1/2 b2/0 b2/2 b3/0 b3/3"""


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
    """Images a second of one chip, as in PopRT benchmarks/ViT/poprt_run.py:36-47."""
    images = torch.zeros(_batch_of(row), 3, _IMAGE, _IMAGE, dtype=torch.float16)
    patch = int(row.find(r"/(\d+)", row.workload)[1])
    sequence = (_IMAGE // patch) ** 2 + 1
    size = row.find(r"ViT-(\w+)", row.workload)[1]
    form = Form(has_scaled_queries=True, has_exact_gelu=True)
    module = Vit(shape_of(size, sequence), form, patch).half()
    run = Run(
        module,
        (images,),
        memory_proportions=(1.0,),
        num_io_tiles=_IO_TILES,
        has_wide_loads=len(images) == _WIDE_BATCH,
    )
    return model_run(run, row.chip).samples_per_second


def swin_inference(row: Published) -> float:
    """Images a second of one chip; I/O tiles as in PopRT benchmarks/Swin-Tiny."""
    images = torch.zeros(_batch_of(row), 3, _IMAGE, _IMAGE, dtype=torch.float16)
    run = Run(SwinTiny().half(), (images,), memory_proportions=(0.3,), num_io_tiles=32)
    return model_run(run, row.chip).samples_per_second


def clip_inference(row: Published) -> float:
    """Images a second, each compared with 100 texts, as in PopRT benchmarks/CLIP."""
    images = torch.zeros(_batch_of(row), 3, _IMAGE, _IMAGE, dtype=torch.float16)
    texts = torch.zeros(100, 77, dtype=torch.int32)
    run = Run(Clip().half(), (images, texts), memory_proportions=(0.2,))
    return len(images) / model_run(run, row.chip).simulation.seconds


def roformer_inference(row: Published) -> float:
    """Texts of 128 tokens a second, as in PopRT benchmarks/RoformerV2/poprt_run.py.

    Its converter turns queries and keys by a product for the larger batches, and scales
    queries for the largest (`used_passes`). Each call brings one batch.
    """
    batch = _batch_of(row)
    ids = torch.zeros(batch, 128, dtype=torch.int32)
    form = roformer.Form(
        has_turning_product=batch > 1, has_scaled_queries=batch == _LARGEST_TEXTS
    )
    module = RoFormer(128, form).half()
    run = Run(module, (ids, ids.clone(), ids.float()))
    return model_run(run, row.chip).samples_per_second


def bert_inference(row: Published) -> float:
    """Sequences a second of one chip, of which a row of a batch may hold several."""
    bert = _bert_of(row)
    rate = bert_figures(bert, row.chip).samples_per_second
    rate = 1 / (1 / rate + bert.host_seconds)
    is_packed = "pack" in f"{row.workload} {row.config}"
    return rate * sequences_by_row(bert.shape.sequence) if is_packed else rate


@dataclass(frozen=True)
class SquadBert:
    """BERT that finds answers in texts, for one batch, and how it is compiled."""

    shape: Shape
    form: Form
    batch: int
    dtype: torch.dtype
    partials: torch.dtype = torch.float16
    memory_proportion: float = 0.6
    num_io_tiles: int = 0
    has_host_loop: bool = False

    @property
    def host_seconds(self) -> float:
        """What the host does for a sequence while the device waits."""
        if not self.has_host_loop:
            return 0.0
        return _HOST_BY_CALL / self.batch + _HOST_BY_SEQUENCE


@dataclass(frozen=True)
class Figures:
    """What is asked of a modelled run."""

    samples_per_second: float
    fits: bool


def _bert_of(row: Published) -> SquadBert:
    """The BERT of a row.

    Rows that name a file, such as `bert_fp16`, are of graphcore/PopRT examples/bert,
    where norms and GELU are not converted to half numbers, queries, keys and values are
    not merged, tiles are for I/O and the commands ask for half partials in half
    precision alone. Their time is that of a loop on the host, which calls with one
    batch, waits, and makes lists of the results (test_bertsquad.py:632-651) before it
    calls again. That model multiplies its scores, as TensorFlow's first BERT does.
    Others are of benchmarks/bert, which calls ahead and asks for wide loads of weights;
    its converter scales queries (`pre_scale`), and keeps norms and GELU of batch 128 in
    float (test_bert_base.py, `fp16_skip_op_types`).
    """
    if "unpack" in row.config:
        raise NotExpressed("packs are taken apart and made again around attention")
    found = row.find(r"BERT-(\w+).* SL(\d+)", row.workload)
    config = row.config.lower()
    is_file, batch = "bert_fp" in config, _batch_of(row)
    form = Form(
        has_fp8="fp8" in config,
        has_gelu=not is_file or "with_gelu" in config,
        has_float_norms=is_file or (found[1] == "Base" and batch == _FLOAT_BATCH),
        has_separate_products=is_file,
        has_divided_scores=False,
        has_scaled_queries=not is_file,
        has_exact_gelu=not is_file and "packs" in config,
    )
    dtype = torch.float32 if "fp32" in config else torch.float16
    shape = shape_of(found[1], int(found[2]))
    if not is_file:
        proportion = _MEMORY_PROPORTIONS[found[1]]
        return SquadBert(shape, form, batch, dtype, memory_proportion=proportion)
    partials = torch.float16 if "bert_fp16" in config else torch.float32
    return SquadBert(
        shape, form, batch, dtype, partials, num_io_tiles=_IO_TILES, has_host_loop=True
    )


@cache
def bert_figures(bert: SquadBert, chip: str) -> Figures:
    """Throughput of one chip, and whether it is large enough."""
    modelled = model_run(_answering(bert), chip)
    return Figures(modelled.samples_per_second, modelled.simulation.fits)


def _answering(bert: SquadBert) -> Run:
    module = with_dtype(Bert(bert.shape, bert.form), bert.dtype)
    ids = torch.zeros(bert.batch, bert.shape.sequence, dtype=torch.int32)
    return Run(
        module,
        (ids, ids, ids.float()),
        memory_proportions=(bert.memory_proportion,),
        partials=bert.partials,
        num_io_tiles=bert.num_io_tiles,
        batches_by_call=1,
        has_wide_loads=not bert.has_host_loop,
    )


def answering_run(model: str, words: str, num_chips: int) -> Run:
    """Inference of graphcore/PopRT: with answers of examples/bert, else benchmarks."""
    length = re.search(r"SL(\d+)", model)
    size, batch = re.search(r"BERT-(\w+)", model), re.search(r"batch (\d+)", words)
    if size is None or batch is None or num_chips != 1:
        raise NotExpressed(f"{model}, {words} on {num_chips} chips")
    precision = words.split()[0].strip(",").lower()
    gelu = "_with_gelu" if "fused" in words else ""
    config = f"bert_{precision}{gelu}" if "SQuAD" in model else precision
    workload = f"BERT-{size[1]} SL{length[1] if length else 128}"
    row = Published("", "", 1, workload, f"{config} bs{batch[1]}", "", "", "")
    return _answering(_bert_of(row))


def bert_fits(row: Published) -> bool:
    """Whether the BERT of a row fits into one chip."""
    return bert_figures(_bert_of(row), row.chip).fits


def resnet_training(row: Published) -> float:
    """Images a second of all replicas, one chip each."""
    micro_batch, accumulation = _images_by_chip(row)
    return model_run(
        resnet_run(micro_batch, accumulation, row.num_chips), system_of(row)
    ).samples_per_second


def resnet_run(
    micro_batch: int,
    accumulation: int,
    num_replicas: int,
    proportion: float = 0.15,
    cuts: Sequence[int] = _CUTS,
) -> Run:
    """Training of ResNet-50 as the vendor's programs for MLPerf have it.

    mlcommons/training_results_v1.0, Graphcore/benchmarks/resnet/implementations/
    tensorflow/configs.yml: all numbers in half precision (FP16.16), weights, sums of
    gradients and momentum too, state on the chip, half partials, 8-bit images,
    collectives merged; stages that lie on one chip, for recomputation between them.
    """
    images = torch.zeros(micro_batch, 3, _IMAGE, _IMAGE, dtype=torch.uint8)
    labels = torch.zeros(micro_batch, dtype=torch.int64)
    return Run(
        Training(ResNet50(cuts)).half(),
        (images, labels),
        accumulation=accumulation,
        num_replicas=num_replicas,
        optimizer="SGD",
        moments=(torch.float16, torch.float16),
        memory_proportions=(proportion,),
        has_merged_collectives=True,
        is_recomputed=True,
    )


_MODELS: Mapping[tuple[str, str], Callable[[Published], float]] = {
    ("ResNet-50", "inference"): resnet_inference,
    ("ViT", "inference"): vit_inference,
    ("Swin-Tiny", "inference"): swin_inference,
    ("CLIP", "inference"): clip_inference,
    ("RoFormerV2", "inference"): roformer_inference,
    ("BERT", "inference"): bert_inference,
    ("ResNet-50", "training"): resnet_training,
    ("BERT", "training"): bert_training,
}


def _inference(row: Published, module: nn.Module, inputs: tuple[Tensor, ...]) -> float:
    return model_run(Run(module, inputs), row.chip).samples_per_second


def _batch_of(row: Published) -> int:
    return int(row.find(r"bs ?(\d+)", f"{row.config} {row.workload}")[1])


def _images_by_chip(row: Published) -> tuple[int, int]:
    """Images of a micro-batch, and micro-batches for each update."""
    if "GBS" in row.config and " x " in row.config:
        found = row.find(r"= (\d+) x (\d+) x (\d+)")
        return int(found[2]), int(found[3])
    return int(row.find(r"mbs (\d+)")[1]), int(row.find(r"GA (\d+)")[1])
