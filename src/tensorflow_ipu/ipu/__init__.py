"""`tensorflow.python.ipu`: everything a program uses of the IPU from TensorFlow.

Modules are loaded when they are first asked for; every operator module of `ipu.ops`
is also a name of this package, and one and the same module.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _patches

_MODULES = (
    "autoshard",
    "config",
    "data",
    "dataset_benchmark",
    "dataset_extractor",
    "distributed",
    "eager",
    "gradient_accumulation",
    "ipu_compiler",
    "ipu_estimator",
    "ipu_infeed_queue",
    "ipu_multi_worker_strategy",
    "ipu_outfeed_queue",
    "ipu_pipeline_estimator",
    "ipu_run_config",
    "ipu_session_run_hooks",
    "ipu_strategy",
    "keras_extensions",
    "loops",
    "ops",
    "optimizers",
    "scopes",
    "serving",
    "sharding",
    "test_utils",
    "utils",
    "vertex_edsl",
)
_OPS = (
    "all_to_all_op",
    "application_compile_op",
    "control_flow_ops",
    "cross_replica_ops",
    "custom_ops",
    "embedded_runtime",
    "embedding_ops",
    "f8_ops",
    "functional_ops",
    "grad_util_ops",
    "image_ops",
    "internal_ops",
    "math_ops",
    "nn_ops",
    "normalization_ops",
    "pipelining_ops",
    "rand_ops",
    "reduce_scatter_op",
    "replication_ops",
    "slicing_ops",
    "statistics_ops",
    "within_replica_ops",
)
_OPTIMIZERS = (
    "cross_replica_optimizer",
    "gradient_accumulation_optimizer",
    "ipu_optimizer",
    "map_gradient_optimizer",
    "sharded_optimizer",
)

# Name in this package -> module it stands for. Names of older releases are found by
# the import finder.
_HOMES = {
    **{name: f".{name}" for name in _MODULES},
    **{name: f".ops.{name}" for name in _OPS},
    **{name: f".optimizers.{name}" for name in _OPTIMIZERS},
    "popfloat_cast_to_gfloat": ".ops.experimental.popfloat_cast_to_gfloat",
    "keras": "keras.ipu",
}


def __getattr__(name: str) -> Any:
    if name == "outlined_function":
        return __getattr__("functional_ops").outlined_function
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(_HOMES[name], __name__)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "outlined_function"])


_patches.apply()
