"""Record: summaries of a fast part of the rows, kept as a file that may only improve.

In: summaries by set. Out: a TOML file, and the lines in which new summaries are worse
than those it holds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.calibration.rows import ALL, Key, Summary
from popple.files import write_atomically

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FAST: Mapping[str, str] = {
    "vertices": r"\[\d*[05]0?8?,",
    "compiler": (
        r"^(bert_proj|bert_grouped_12x128|bert_reduce|fc_layer_16_|gemm_200x64|"
        r"inception_tr_bs1_i[56]|inception_tr_bs4_i5|mobilenet_conv_pw_[45]|"
        r"mobilenet_depthwise_4|oct_resnet50_tr_bs4_bm128L0A0|embedding_small|"
        r"cholesky_batch_1_dim_16)"
    ),
    "kernels": r"^(spmm_dense|gb_poplibs_bricks)",
    "models": r"^poprt_(rn50_bs1|vit_bs8)$",
    "memory": (
        r"^(poprt_bertb256_bert_fp(16_bs8|32_bs32)|squad_base_384_pt|"
        r"mlperf10_rn50_pod16)$"
    ),
}
"""Names of the rows that tests look at, by set"""
_DIGITS = 4

Summaries = Mapping[str, Mapping[Key, Summary]]


def write_record(summaries: Summaries, path: Path) -> None:
    """Keep the summaries of some sets."""
    lines = ["# Written by benchmarks/fidelity.py --fast --record FILE."]
    for name, found in summaries.items():
        for key, summary in found.items():
            # Groups are few rows each: one of them may give way to all together.
            if key[-1] != ALL:
                continue
            heading = ".".join(f'"{word}"' for word in (name, *key))
            lines += ["", f"[{heading}]", f"num_rows = {summary.num_rows}"]
            lines += [f"{name} = {size}" for name, size in _sizes(summary).items()]
    write_atomically(path, "\n".join(lines) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """The sizes of errors by set, quantity, chip and group."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def find_worse(
    kept: Mapping[str, Any], summaries: Mapping[Key, Summary]
) -> Iterator[str]:
    """What is worse than the kept record of the same set, or missing."""
    for quantity, chips in kept.items():
        for chip, groups in chips.items():
            for group, sizes in groups.items():
                found = summaries.get((quantity, chip, group))
                where = f"{quantity} on {chip}, {group}"
                yield from _find_worse_sizes(where, sizes, found)


def _find_worse_sizes(
    where: str, kept: Mapping[str, float], found: Summary | None
) -> Iterator[str]:
    if found is None or found.num_rows < kept["num_rows"]:
        yield f"{where}: fewer rows are expressed than the {kept['num_rows']} kept"
        return
    # Rows that were not expressed before may be worse than those that were.
    if found.num_rows > kept["num_rows"]:
        return
    for name, size in _sizes(found).items():
        if size > kept[name]:
            yield f"{where}: {name} |error| is {size}, it was {kept[name]}"


def _sizes(summary: Summary) -> dict[str, float]:
    """Sizes rounded up, so that the last bit of a float does not matter."""
    scale = 10**_DIGITS
    sizes = {"median": summary.median, "percentile_90": summary.percentile_90}
    return {name: math.ceil(scale * size) / scale for name, size in sizes.items()}
