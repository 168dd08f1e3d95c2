"""Networks for images, as tables of runs that fit or do not name them.

In: what a table says of a run, in words. Out: the `Run`. Batches that arrive while
others are computed do so over I/O tiles (graphcore/PopRT examples/resnet50).
"""

from __future__ import annotations

import re

import torch
from torch import nn

from benchmarks.calibration.bert import Form, Vit
from benchmarks.calibration.clip import Clip
from benchmarks.calibration.models import resnet_run
from benchmarks.calibration.pretraining import shape_of
from benchmarks.calibration.resnet import ResNet50, ResNeXt50
from benchmarks.calibration.rows import NotExpressed
from benchmarks.calibration.runs import Run

_IMAGE = 224
_FIRST_BLOCKS = (0, 3, 7, 13)
"""Blocks at which the four parts of a ResNet-50 begin"""
_IO_TILES = 32


def resnet_training(model: str, words: str, num_chips: int) -> Run:
    """ResNet-50, one chip for each replica, cut as the words say."""
    if "chips x" in words:
        raise NotExpressed("ResNet-50 as a pipeline of chips")
    if "RecomputeAll" in words or "block sums" in words:
        raise NotExpressed("checkpoints inside of blocks")
    cuts = [
        _FIRST_BLOCKS[int(part) - 1] + int(block)
        for part, block in re.findall(r"b(\d)/(\d)", words)
    ]
    return resnet_run(
        _number(r"mbs (\d+)", words),
        _number(r"GA (\d+)", words),
        num_chips,
        float(_found(r"AMP (\.\d+)", words)),
        cuts,
    )


def resnet_images(model: str, words: str, num_chips: int) -> Run:
    """Inference of ResNet-50."""
    return _inference(ResNet50(), words)


def resnext_images(model: str, words: str, num_chips: int) -> Run:
    """Inference of ResNeXt-50."""
    return _inference(ResNeXt50(), words)


def vit_images(model: str, words: str, num_chips: int) -> Run:
    """Inference of ViT-B/16."""
    return _inference(Vit(shape_of("Base", 197), Form()), words)


def clip_images(model: str, words: str, num_chips: int) -> Run:
    """Inference of CLIP, as graphcore/PopRT benchmarks/CLIP has it."""
    images = torch.zeros(_number(r"batch (\d+)", words), 3, _IMAGE, _IMAGE).half()
    texts = torch.zeros(100, 77, dtype=torch.int32)
    return Run(Clip().half(), (images, texts), memory_proportions=(0.2,))


def _inference(module: nn.Module, words: str) -> Run:
    """A network by itself; a program that names no type has floats throughout."""
    if "FP8" in words:
        raise NotExpressed("convolutions in FP8")
    dtype = torch.float16 if "FP16" in words else torch.float32
    # Images of examples/resnet50 are bytes (test_resnet.py, `export_model`), those that
    # never leave the chip too.
    has_bytes = re.search("8-bit input|overlapped|synthetic", words) is not None
    input_dtype = torch.uint8 if has_bytes else dtype
    size = _number(r"batch (\d+)", words), 3, _IMAGE, _IMAGE
    said = re.search(r"AMP (\.\d+)", words)
    return Run(
        module.to(dtype),
        (torch.zeros(size, dtype=input_dtype),),
        memory_proportions=(float(said[1]),) if said else (),
        partials=dtype,
        num_io_tiles=_IO_TILES if "overlapped" in words else 0,
    )


def _number(pattern: str, words: str) -> int:
    return int(_found(pattern, words))


def _found(pattern: str, words: str) -> str:
    found = re.search(pattern, words)
    if found is None:
        raise NotExpressed(f"the words do not say {pattern}")
    return found[1]
