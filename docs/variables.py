"""Tables of docs/environment.md: variables and options of Poplar with their effect."""

from __future__ import annotations

from collections.abc import Mapping

from popple import logs
from popple.session.poplar_options import TABLES
from popple.text_table import render_markdown_table
from poptorch._options.tables import VARIABLES_WITHOUT_EFFECT

_NO = "no effect"
_NO_SERVER = "no effect: virtual pods need no server"

# By section: variables and what they do.
VARIABLES: Mapping[str, Mapping[str, str]] = {
    "popple": {
        "POPPLE_TARGET": "the machine that programs see and are modelled on",
        "POPPLE_REPORT": "a directory: every program writes its report there",
        "POPPLE_BACKEND": "how steps are executed: `replay` or `inductor`",
        "POPPLE_DEVICE": "the computer's device they run on: `cpu` or `cuda`",
        "POPPLE_NUMERICS": "parts of the machine's arithmetic to compute with",
        "POPPLE_KEEP_BFLOAT16": "a GPU computes in bfloat16, not in float32",
        "POPPLE_QUIET": "no progress bars",
        "POPPLE_TENSORFLOW": "`off` leaves TensorFlow and Keras as installed",
    },
    "poplar": {
        "POPLAR_ENGINE_OPTIONS": "JSON: engine options, which beat the program's own",
        "POPLAR_RUNTIME_OPTIONS": "JSON: options of running, checked; none has effect",
        "POPLAR_TARGET_OPTIONS": "JSON: options of links, checked; none has effect",
        "POPLAR_SIMULATOR_OPTIONS": f"{_NO}: there is no simulator of instructions",
        "POPLAR_GRAPH_REPORT_DEST": f"{_NO}: `popple report` prints reports",
        "POPLAR_SDK_ENABLED": "set by `popple enable`; nothing of Popple needs it",
        "POPLAR_EXECUTABLE_CACHE_DIR": "where `popple run` puts executable caches "
        "(default: `popple/executables` in the user's cache directory)",
    },
    "poptorch": {
        "POPTORCH_CACHE_DIR": "as `Options.enableExecutableCaching`",
        "POPTORCH_DEFAULT_OPTIONS": "JSON: setters of `Options` and their values; an "
        "unknown one is an error",
        "POPTORCH_WAIT_FOR_IPU": "wait until IPUs are free",
        "POPTORCH_IPU_MODEL": "as `Options.useIpuModel(True)`",
        "POPTORCH_SMALL_IPU_MODEL": "the same: the model is not smaller",
        "POPTORCH_LOG_LEVEL": "level of PopTorch's own log (`WARN`)",
        "POPTORCH_LOG_DEST": "`stdout`, `stderr` or a file",
        "POPTORCH_EXPORT_PROTO_FILE": "write the forward pass as an ONNX model",
        "POPTORCH_EXPORT_PROTO_AS_BINARY": "as bytes, not as text",
        **{name: f"{_NO}: {why}" for name, why in VARIABLES_WITHOUT_EFFECT.items()},
    },
    "tensorflow": {
        "TF_POPLAR_FLAGS": "flags: [TensorFlow](tensorflow.md) lists them",
        "TF_IPU_COUNT": "IPUs that test helpers may use",
        "TF_CPP_MIN_LOG_LEVEL": "TensorFlow's own",
    },
    "popart": {
        "POPART_CACHE_DIR": "the executable cache of PopART programs",
        "POPART_DOT_CHECKS": f"{_NO}: graphs are in the report",
        "POPART_IR_DUMP": f"{_NO}: graphs are in the report",
        "POPXL_CACHE_DIR": f"{_NO}: PopXL programs do not run here",
    },
    "devices": {
        "IPUOF_VIPU_API_PARTITION_ID": "the partition that programs attach to",
        "IPUOF_CONFIG_PATH": "the same, by the file of `vipu create partition`",
        "GRAPHCORE_POD_TYPE": "kind of the default machine: `pod4`, `bow-pod16`, ...",
        "POPPLE_STATE": "where pods, partitions and locks are kept",
        "IPUOF_VIPU_API_HOST": _NO_SERVER,
        "IPUOF_VIPU_API_PORT": _NO_SERVER,
        "IPUOF_VIPU_API_TIMEOUT": _NO_SERVER,
        "IPUOF_VIPU_API_GCD_ID": _NO_SERVER,
        "IPUOF_LOG_LEVEL": f"{_NO}: there is no fabric to speak of",
    },
    "tools": {
        "GCDA_OPTIONS": "JSON: faults for the `gc-*` tools to find: [tools](tools.md)",
        "IPU_APP_EVENT_RECORD_PATH": "a directory for records of faults that are found",
        "VIPU_CLI_API_HOST": "the host that `vipu` names as its server",
        "PVTI_OPTIONS": "JSON: `enable`, `directory`, `channels`, `duration` of a "
        "trace of the host; an unknown key is reported",
        "DATASETS_DIR": "where benchmarks of `examples_utils` look for data",
        "XDG_CACHE_HOME": "the user's cache directory",
    },
}


def render_variables(section: str) -> str:
    """The variables of one section."""
    rows = [(f"`{name}`", text) for name, text in VARIABLES[section].items()]
    return render_markdown_table(("variable", "what it does"), rows)


def render_logs() -> str:
    """The variables of logging by library."""
    rows: list[tuple[str, ...]] = []
    for library in logs.LIBRARIES.values():
        name = library.variable
        modules = ", ".join(f"`{module}`" for module in library.modules)
        own = name != "POPART"  # its modules have levels in a file
        level = f"`{name}_<MODULE>_LOG_LEVEL`" if own else f"`{name}_LOG_CONFIG`"
        rows.append((f"`{name}_LOG_LEVEL`", f"`{name}_LOG_DEST`", level, modules))
    return render_markdown_table(
        ("level", "destination", "level of a module", "modules"), rows
    )


def render_poplar_options() -> str:
    """Every option of Poplar: by variable, with its effect."""
    rows: list[tuple[str, ...]] = []
    for variable, table in TABLES.items():
        short = variable.removeprefix("POPLAR_").removesuffix("_OPTIONS").lower()
        for name, option in sorted(table.items()):
            reason = option.without_effect
            effect = f"{_NO}: {reason}" if reason else "yes"
            rows.append((short, f"`{name}`", option.meaning, effect))
    return render_markdown_table(("options", "name", "meaning", "effect"), rows)
