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

from benchmarks.calibration.rows import Key, Summary
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


INDEPENDENT = ", rows not derived from"
OUT_OF_SAMPLE = ", without own"
"""Behind the name of a set: some of its rows, or constants derived without families"""


def update_results(summaries: Summaries, path: Path) -> None:
    """Keep the summaries of the sets that ran; those of others stay as they are."""
    kept = read_record(path) if path.exists() else {}
    together = {name: dict(_summaries_in(sizes)) for name, sizes in kept.items()}
    write_record({**together, **summaries}, path, "--without-own --results FILE")


def _summaries_in(kept: Mapping[str, Any]) -> Iterator[tuple[Key, Summary]]:
    for quantity, chips in kept.items():
        for chip, groups in chips.items():
            for group, sizes in groups.items():
                yield (quantity, chip, group), Summary(**sizes)


def write_record(
    summaries: Summaries, path: Path, options: str = "--fast --record FILE"
) -> None:
    """Keep the summaries of some sets."""
    lines = [f"# Written by benchmarks/fidelity.py {options}."]
    for name, found in summaries.items():
        for key, summary in found.items():
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
    for name, size in _sizes(found).items():
        if size > kept.get(name, math.inf):
            yield f"{where}: {name} |error| is {size}, it was {kept[name]}"


def _sizes(summary: Summary) -> dict[str, float]:
    """Sizes rounded up, so that the last bit of a float does not matter."""
    scale = 10**_DIGITS
    sizes = {
        "median": summary.median,
        "percentile_90": summary.percentile_90,
        "mean": summary.mean,
    }
    return {name: math.ceil(scale * size) / scale for name, size in sizes.items()}
