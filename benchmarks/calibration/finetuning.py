"""Fine-tuning of BERT for answers and training of ViT, each a pipeline of chips.

In: what a table says of a run, in words. Out: the `Run`, as the programs of
graphcore/examples have it: nlp/bert/pytorch and vision/vit/pytorch.
"""

from __future__ import annotations

import re

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.calibration.bert import (
    Form,
    Layer,
    Shape,
    Squad,
    Vit,
    place_layers,
)
from benchmarks.calibration.configurations import Settings, read_settings
from benchmarks.calibration.pretraining import shape_of
from benchmarks.calibration.rows import NotExpressed
from benchmarks.calibration.runs import Run

_DROPOUT = 0.1
_IMAGE, _PATCH = 224, 16
_MIDDLE = re.compile(r"mid-layer checkpoints ([\d ]+)")


class Classified(nn.Module):
    """ViT with the loss of its classes."""

    def __init__(self, shape: Shape, form: Form) -> None:
        super().__init__()
        self.vit = Vit(shape, form, _PATCH)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        return F.cross_entropy(self.vit(images).float(), labels)


def squad_training(model: str, words: str, num_chips: int) -> Run:
    """BERT learns where answers lie; with the scores on the last chip."""
    found = re.search(r"BERT-(\w+) SQuAD SL(\d+)", model)
    if found is None:
        raise NotExpressed(f"{model!r} does not say how large it is")
    settings = read_settings(words)
    shape = shape_of(found[1], int(found[2]))
    has_dropout = settings.has_attention_dropout
    form = Form(
        dropout=_DROPOUT, has_attention_dropout=has_dropout, has_divided_scores=False
    )
    module = Squad(shape, form)
    place_layers(module.bert.layers, settings.stages)
    ids = torch.zeros(settings.micro_batch, shape.sequence, dtype=torch.int32)
    place = torch.zeros(settings.micro_batch, dtype=torch.int64)
    inputs = (ids, ids.clone(), torch.ones(ids.shape), place, place.clone())
    return staged_run(module, inputs, settings, num_chips, "AdamW")


def vit_training(model: str, words: str, num_chips: int) -> Run:
    """ViT-B/16 learns classes of images."""
    settings = read_settings(words)
    shape = shape_of("Base", (_IMAGE // _PATCH) ** 2 + 1)
    form = Form(dropout=_DROPOUT, has_attention_dropout=False)
    module = Classified(shape, form)
    place_layers(module.vit.layers, settings.stages)
    if said := _MIDDLE.search(words):
        for number in map(int, said[1].split()):
            layer = module.vit.layers[number]
            assert isinstance(layer, Layer)
            layer.keeps_attention = True
    size = settings.micro_batch, 3, _IMAGE, _IMAGE
    images = torch.zeros(size, dtype=torch.float16)
    labels = torch.zeros(settings.micro_batch, dtype=torch.int64)
    optimizer = "SGD" if "SGD" in words else "Adam"
    return staged_run(module, (images, labels), settings, num_chips, optimizer)


def staged_run(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    settings: Settings,
    num_chips: int,
    optimizer: str,
) -> Run:
    """Training of a module in half precision by replicas, each a pipeline."""
    return Run(
        module.half(),
        inputs,
        accumulation=settings.accumulation,
        num_replicas=num_chips // settings.num_chips,
        chips_by_replica=settings.num_chips,
        optimizer=optimizer,
        moments=settings.moments,
        memory_proportions=settings.proportions,
        has_states_off_chip=settings.has_states_off_chip,
        has_shared_updates=settings.has_shared_updates,
    )
