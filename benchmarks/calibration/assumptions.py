"""Assumptions: where the settings of rows come from, and what is taken for granted.

What a publication says of a run is in the row's own columns, with its source. Here is
what its expression adds: from which public program, or the stack's default if nothing
is known. Each row of a set has one entry, found by group and name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.calibration.rows import Row

_DEFAULTS = "as nothing is said: the stack's memory proportion of 0.6, no I/O tiles"
_HALF = "half partials, as the vendor's programs ask for in half precision"
_UNSAID = (
    "half partials, of which its program says nothing; others that want float say so"
)
_POPRT = "graphcore/PopRT"
_EXACT = "GELU by the error function (enable_erf_gelu)"
_SCALED = "queries scaled (pre_scale)"

# By set: regular expressions on "group: name", the first that is found.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "vertices": {"": "one vertex with the sizes of the row; nothing is assumed"},
    "compiler": {
        "": "parameters of the row; the tool's defaults of PopLibs' release 2.0"
    },
    "kernels": {
        "gb_|stencil": (
            "codelets counted by hand from the public program; grids are dealt out as "
            "it deals them; two sweeps an iteration"
        ),
        "": "sizes and types of the row; data lie on the chip",
    },
    "models": {
        "^ResNet-50 inference": f"{_DEFAULTS}; {_HALF}",
        "^ViT inference": (
            f"{_POPRT} benchmarks/ViT: proportion 1.0, 32 I/O tiles, wide loads of "
            f"weights for batch 32, {_EXACT}, {_SCALED}; {_UNSAID}"
        ),
        "^Swin-Tiny": (
            f"{_POPRT} benchmarks/Swin-Tiny: 32 I/O tiles, proportion 0.3, {_EXACT}; "
            f"{_UNSAID}"
        ),
        "^CLIP": f"{_POPRT} benchmarks/CLIP: 100 texts, proportion 0.2; {_UNSAID}",
        "^RoFormerV2": (
            f"{_POPRT} benchmarks/RoformerV2: a product that turns queries and keys "
            "(taken to be what matmul_rotary_embedding makes) from batch 64 on, "
            f"{_SCALED} at 356; {_DEFAULTS}; {_UNSAID}"
        ),
        "^BERT inference.*_pack": (
            f"{_POPRT} benchmarks/bert/test_bert_large_pack.py: proportion 0.15, wide "
            f"loads of weights, {_EXACT}, {_SCALED}"
        ),
        "^BERT inference": (
            f"{_POPRT} benchmarks/bert: proportion 0.4 (Base), 0.15 (Large), wide "
            f"loads of weights, {_SCALED}, norms and GELU of batch 128 in float, GELU "
            "by tanh (erf_gelu_pattern is taken to make the op Gelu that the program "
            "names); rows that name a file: examples/bert, 32 I/O tiles, one batch a "
            "call, half partials in half precision, scores multiplied as TensorFlow's "
            "BERT does; with the loop on the host, 126 us a call and 30 us a sequence"
        ),
        "^ResNet-50 training": (
            "mlcommons/training_results_v1.0 Graphcore resnet configs.yml: half "
            "precision throughout, proportion 0.15, six cuts"
        ),
        "^BERT training": (
            "configurations.py: the public configuration of the row's page or round; "
            "data without padding where a row says packed, with the mask of pairs of "
            "positions that its program makes; rounds before v2.0 with "
            "their validations; on PopART 0.17 s between steps, which is not modelled"
        ),
        "": "no module here",
    },
    "memory": {
        "^BERT on one chip": f"{_POPRT} examples/bert; float partials in float",
        "chip": "the public configuration that the row of fits.csv names, and its file",
        "": "the profiled program, as graphcore/popliner names it",
    },
}


def settings_of(set_name: str, row: Row) -> str:
    """Where the settings of a row are from and what they assume."""
    text = f"{row.group}: {row.name}"
    known = SETTINGS[set_name]
    return next(words for pattern, words in known.items() if re.search(pattern, text))
