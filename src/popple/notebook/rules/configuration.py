"""Configuration that notebooks take from the environment."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from popple.notebook.code import (
    Call,
    attribute_writes,
    calls,
    dotted,
    environment_reads,
    names_read,
    text_of,
)
from popple.notebook.document import Document
from popple.notebook.rule import WRITTEN, Rule, Settings, Spot, automatic, warning

NUM_IPUS = "NUM_AVAILABLE_IPU"
POD_TYPE = "GRAPHCORE_POD_TYPE"
CACHE = "POPLAR_EXECUTABLE_CACHE_DIR"
DATASETS = "DATASETS_DIR"
CHECKPOINTS = "CHECKPOINT_DIR"

# The defaults that readers know; the other two have none.
DEFAULTS: dict[str, object] = {
    NUM_IPUS: 16,
    POD_TYPE: "pod16",
    CACHE: "/tmp/exe_cache/",
}
VARIABLES = (NUM_IPUS, POD_TYPE, CACHE, DATASETS, CHECKPOINTS)

_SETS_IPUS = {"replicationFactor", "auto_select_ipus", "IPUs", "set_ipu_count"}
_IPU_KEYWORDS = {"num_ipus", "number_of_ipus", "replication_factor", "num_replicas"}
_SETS_CACHE = {"enableExecutableCaching"}
_CACHE_KEYWORDS = {"executable_cache_dir", "executable_cache_path", "cache_dir"}
_DATA_KEYWORDS = {"data_dir", "dataset_dir", "dataset_directory", "root"}
_CHECKPOINT_CALLS = {
    "change_checkpoint",
    "save_checkpoint",
    "save_pretrained",
    "load_weights",
    "save_weights",
    "ModelCheckpoint",
    "load_checkpoint",
}
_POD_LITERAL = re.compile(r"^(?:bow-)?pod\d+$")
_PATH_LITERAL = re.compile(
    r"^(?:/(?:tmp|data|home|mnt|localdata|scratch)\b|~/|[A-Z]:\\)"
)

Place: TypeAlias = tuple[int, int]


def _uses(document: Document, is_use: Callable[[Call], bool]) -> Iterator[Place]:
    for call in calls(document.code):
        if is_use(call):
            yield call.cell, call.line


def _keywords(call: Call) -> set[str]:
    return {keyword.arg or "" for keyword in call.node.keywords}


def _sets_ipus(call: Call) -> bool:
    return call.method in _SETS_IPUS or bool(_keywords(call) & _IPU_KEYWORDS)


def _sets_cache(call: Call) -> bool:
    return call.method in _SETS_CACHE or bool(_keywords(call) & _CACHE_KEYWORDS)


def _reads_data(call: Call) -> bool:
    return bool(_keywords(call) & _DATA_KEYWORDS)


def _touches_checkpoint(call: Call) -> bool:
    is_torch = call.name in ("torch.save", "torch.load")
    return is_torch or call.method in _CHECKPOINT_CALLS


def _ipu_settings(document: Document) -> Iterator[Place]:
    yield from _uses(document, _sets_ipus)
    for name, value, cell in attribute_writes(document.code):
        if name.rpartition(".")[2] in _SETS_IPUS:
            yield cell, value.lineno


def _pod_uses(document: Document) -> Iterator[Place]:
    for parsed in document.code:
        defaults = {id(r.default) for r in environment_reads([parsed])}
        for node in ast.walk(parsed.tree):
            is_read = id(node) in defaults
            if not is_read and _POD_LITERAL.match(text_of(node)):
                yield parsed.cell, getattr(node, "lineno", 1)


def _data_uses(document: Document) -> Iterator[Place]:
    yield from _uses(document, _reads_data)
    for name, cell, line in names_read(document.code):
        if name in _DATA_KEYWORDS - {"root"}:
            yield cell, line


def _unless_read(
    document: Document, variable: str, uses: Iterator[Place]
) -> Iterator[Spot]:
    reads = {read.variable for read in environment_reads(document.code)}
    if variable not in reads:
        yield from (Spot(*place) for place in uses)


def check_ipus(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from _unless_read(document, NUM_IPUS, _ipu_settings(document))


def check_pod(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from _unless_read(document, POD_TYPE, _pod_uses(document))


def check_cache(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from _unless_read(document, CACHE, _uses(document, _sets_cache))


def check_data(document: Document, settings: Settings) -> Iterator[Spot]:
    yield from _unless_read(document, DATASETS, _data_uses(document))


def check_checkpoints(document: Document, settings: Settings) -> Iterator[Spot]:
    uses = _uses(document, _touches_checkpoint)
    yield from _unless_read(document, CHECKPOINTS, uses)


def check_defaults(document: Document, settings: Settings) -> Iterator[Spot]:
    for read in environment_reads(document.code):
        if read.variable in DEFAULTS:
            wanted = DEFAULTS[read.variable]
            default = read.default
            value = default.value if isinstance(default, ast.Constant) else None
            # Text or number: both become the same number.
            if str(value) != str(wanted):
                yield Spot(read.cell, read.line, f"{read.variable}, not {wanted!r}")


def check_used(document: Document, settings: Settings) -> Iterator[Spot]:
    used = {name for name, _, _ in names_read(document.code)}
    for read in environment_reads(document.code):
        if read.variable in VARIABLES and read.name and read.name not in used:
            yield Spot(read.cell, read.line, read.name)


def check_literals(document: Document, settings: Settings) -> Iterator[Spot]:
    reads = [read for read in environment_reads(document.code)]
    known = {id(read.default) for read in reads}
    for call in calls(document.code):
        is_count = call.method in _SETS_IPUS and call.node.args
        value = call.node.args[0] if is_count else None
        if isinstance(value, ast.Constant) and value.value != 1:
            yield Spot(call.cell, call.line, f"{dotted(call.node.func)}({value.value})")
    for parsed in document.code:
        for node in ast.walk(parsed.tree):
            if id(node) not in known and _PATH_LITERAL.match(text_of(node)):
                yield Spot(parsed.cell, getattr(node, "lineno", 1), text_of(node))


def _read(variable: str, default: str = "") -> str:
    more = f", {default}" if default else ""
    return f'Read it in the configuration: os.getenv("{variable}"{more}).'


RULES: tuple[Rule, ...] = (
    automatic(
        45,
        "configuration",
        f"The number of IPUs is set and {NUM_IPUS} is not read",
        _read(NUM_IPUS, "16"),
        check_ipus,
    ),
    automatic(
        46,
        "configuration",
        f"A type of pod is used and {POD_TYPE} is not read",
        _read(POD_TYPE, '"pod16"'),
        check_pod,
    ),
    automatic(
        47,
        "configuration",
        f"A cache of executables is set and {CACHE} is not read",
        _read(CACHE, '"/tmp/exe_cache/"'),
        check_cache,
    ),
    automatic(
        48,
        "configuration",
        f"Data are read from a path and {DATASETS} is not read",
        _read(DATASETS),
        check_data,
    ),
    automatic(
        49,
        "configuration",
        f"A checkpoint is written or read and {CHECKPOINTS} is not read",
        _read(CHECKPOINTS),
        check_checkpoints,
    ),
    automatic(
        50,
        "configuration",
        "A variable of the environment has another default than documented",
        'Use the documented ones: 16, "pod16", "/tmp/exe_cache/".',
        check_defaults,
    ),
    automatic(
        51,
        "configuration",
        "A configured value is never used",
        "Remove it, or use it.",
        check_used,
        WRITTEN,
    ),
    warning(
        52,
        "configuration",
        "A number of IPUs or a path is written into the code",
        "Take it from the configuration.",
        check_literals,
    ),
)
