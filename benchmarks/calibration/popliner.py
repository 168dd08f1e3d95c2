"""The models whose profiles graphcore/popliner has, layer by layer.

In: the name of a model as the table of their memory has it. Out: what popple models of
it, and which of its ops belong to which layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor

import popple
from benchmarks.calibration.bert import Bert, Form, Shape, Squad, with_dtype
from benchmarks.calibration.efficientnet import EfficientNetEdgeL
from benchmarks.calibration.rows import NotExpressed
from benchmarks.calibration.runs import Run, model_run
from popple.graph import Op

CHIP = "gc200"
_LAYER = re.compile(r"\b(?:layers|blocks)\.(\d+)\b")
_WORDS = re.compile(r"\bwords\b")
_VOCABULARY = 30_400
"""Rows of the table of words in the BERT of graphcore/examples for PopART"""


@dataclass(frozen=True)
class Profiled:
    """A modelled run, and the names of the ops of each of its layers."""

    modelled: popple.Modelled
    ops_by_layer: Mapping[int, frozenset[str]]


@cache
def profiled(model: str) -> Profiled:
    """A model of the table."""
    if model not in _RUNS:
        raise NotExpressed(f"no module of {model!r}")
    modelled = model_run(_RUNS[model](), CHIP)
    return Profiled(modelled, ops_by_layer(modelled))


def ops_by_layer(modelled: popple.Modelled) -> dict[int, frozenset[str]]:
    """The ops of each layer, by the number in the name of their module.

    Ops outside of all modules, such as updates, go by the names of what they read. The
    lookup of words is part of the first layer.
    """
    found: dict[int, set[str]] = {}
    for op in modelled.graph.ops:
        layer = _layer_of(op)
        if layer is not None:
            found.setdefault(layer, set()).add(op.name)
    return {layer: frozenset(found[layer]) for layer in sorted(found)}


def _layer_of(op: Op) -> int | None:
    text = op.module or " ".join(op.inputs)
    if layer := _LAYER.search(text):
        return int(layer[1])
    return 0 if _WORDS.search(text) else None


def _large_bert() -> Run:
    """BERT-Large, inference, configs/squad_large_128_inf.json: no attention biases."""
    shape = Shape(24, 1024, 16, 128, _VOCABULARY)
    form = Form(has_attention_bias=False)
    module = with_dtype(Bert(shape, form), torch.float16)
    # PopLiner has layers compiled apart, so that each has a size of its own.
    return Run(module, _texts(128), is_outlined=False)


def _tiny_bert() -> Run:
    """BERT, training, configs_squad.yml demo_tiny_128 with 3 layers on one chip.

    States of the optimiser lie off the chip (`optimizer_state_offchip`).
    """
    form = Form(dropout=0.1, has_attention_dropout=False, has_separate_weights=True)
    module = with_dtype(Squad(Shape(3, 64, 8, 128), form), torch.float16)
    places = torch.zeros(1, dtype=torch.int32)
    run = Run(module, (*_texts(128), places, places), accumulation=16)
    run = replace(run, optimizer="AdamW", has_states_off_chip=True)
    return replace(run, is_outlined=False)


def _efficientnet() -> Run:
    """EfficientNet-EdgeTPU-L, inference in single precision.

    Activations in the profile are 8 bytes for each channel and place (112 * 112 * 128
    * 8 after the first expansion): 2 images of floats or 4 of halves. What products
    keep besides is that of floats: in halves, with sums in either type, layers 3 to 5
    would be off by 30 % or more.
    """
    images = torch.zeros(2, 3, 224, 224)
    return Run(EfficientNetEdgeL(), (images,), partials=torch.float32)


def _texts(sequence: int) -> tuple[Tensor, Tensor, Tensor]:
    ids = torch.zeros(1, sequence, dtype=torch.int32)
    return ids, ids, ids.float()


_RUNS: Mapping[str, Callable[[], Run]] = {
    "bert_large_squad_inf": _large_bert,
    "bert_demo_tiny_train": _tiny_bert,
    "efficientnet_edgetpu_L": _efficientnet,
}
