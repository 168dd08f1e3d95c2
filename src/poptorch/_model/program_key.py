"""The key of a model in the executable cache, told without tracing the model.

A key stands for all that the compiled model depends on: module, code, arguments,
options, optimiser, machine, environment, versions. What only matters to a run (learning
rates, seeds, where reports and caches lie) is left out, so that a sweep over learning
rates compiles once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from popple.engine.torch.session import StepRequest
from popple.engine.torch.session.fingerprint import TraceIdentity, fingerprint_trace
from popple.session import Settings
from popple.session.fingerprint import Unknown

from .. import _translate as translate
from .._arguments.args import BoundArgs
from .._device import model_target
from .._logging import logger
from .._optim.description import Description, Setting
from .._optim.link import NoOptimizer, OptimizerLink
from ..options import Options
from .host_tensors import OWN_ATTRIBUTES, PoptorchBuffer, PoptorchParameter, plain_class

__all__ = ["ProgramKey", "find_key"]

# Options that say where things are, or what a run begins with.
_RUN_OPTIONS = frozenset({"cachePath", "enableEngineCaching", "random_seed"})
_RUN_ATTRIBUTES = frozenset({"_progress_bar", "_is_frozen"})
_REPORTS = "autoReport."
_PREFIXES = ("POPPLE_", "POPTORCH_", "POPLAR_", "POPART_", "POPLIBS_", "POPXL_")
# Variables about logs, places and waiting: no model depends on them.
_RUN_VARIABLES = frozenset(
    {
        "POPART_CACHE_DIR",
        "POPLAR_EXECUTABLE_CACHE_DIR",
        "POPPLE_QUIET",
        "POPPLE_REPORT",
        "POPPLE_STATE",
        "POPTORCH_CACHE_DIR",
        "POPTORCH_EXPORT_PROTO_AS_BINARY",
        "POPTORCH_EXPORT_PROTO_FILE",
        "POPTORCH_WAIT_FOR_IPU",
        "POPXL_CACHE_DIR",
    }
)
_LOGS = ("_LOG_LEVEL", "_LOG_DEST", "_LOG_PRECISION")


class ProgramKey:
    """The key of one model for the arguments of its first call."""

    def __init__(self, identity: TraceIdentity) -> None:
        self._identity = identity

    def compute(self) -> str:
        """The key as things are now; Unknown if it cannot be told."""
        return fingerprint_trace(self._identity)


def find_key(
    request: StepRequest,
    bound: BoundArgs,
    options: Options,
    link: OptimizerLink | NoOptimizer,
    settings: Settings,
) -> tuple[ProgramKey, str] | None:
    """The key of a model, and its value; None if something stands in the way.

    That is said in the log: such a model is traced in every run.
    """
    identity = TraceIdentity(
        module=request.module,
        inputs=request.inputs,
        arguments=(bound.args, bound.arg_names, bound.kwargs),
        settings=_settings_of(request, options, link, settings),
        own_attributes=OWN_ATTRIBUTES,
        class_of=plain_class,
        tensor_classes=(PoptorchParameter, PoptorchBuffer),
        environ=dict(os.environ),
    )
    key = ProgramKey(identity)
    try:
        return key, key.compute()
    except Unknown as error:
        logger.debug(
            "The model is traced before it is looked up in the cache: %s", error
        )
        return None


def _settings_of(
    request: StepRequest,
    options: Options,
    link: OptimizerLink | NoOptimizer,
    settings: Settings,
) -> dict[str, Any]:
    replicas = translate.num_replicas(options)
    return {
        "name": request.name,
        "input_names": tuple(request.input_names),
        "batch_plan": request.batch_plan,
        "trainable": request.trainable,
        "backend": request.backend,
        "grouped": tuple(sorted(request.grouped)),
        "scales_loss": request.scales_loss,
        "automatic": request.automatic,
        "has_strided_groups": request.has_strided_groups,
        "numerics": request.numerics,
        "options": _compiled_options(options),
        "optimizer": _optimizer_of(link),
        "target": repr(model_target(1, replicas)),
        "settings": replace(settings, report=None, is_quiet=False),
        "environment": tuple(_environment()),
    }


def _compiled_options(value: Any) -> Any:
    """The options without those that only matter to a run."""
    if isinstance(value, dict):
        return {
            key: _compiled_options(item)
            for key, item in value.items()
            if key not in _RUN_OPTIONS and not str(key).startswith(_REPORTS)
        }
    if type(value).__module__.startswith("poptorch") and hasattr(value, "__dict__"):
        attributes = {k: v for k, v in vars(value).items() if k not in _RUN_ATTRIBUTES}
        return (type(value).__qualname__, _compiled_options(attributes))
    return value


def _optimizer_of(link: OptimizerLink | NoOptimizer) -> tuple[Any, ...]:
    if isinstance(link, NoOptimizer):
        return ()
    description = link.description
    names = [
        f.name for f in fields(Description) if f.name not in ("defaults", "groups")
    ]
    cls = type(link.optimizer)
    return (
        f"{cls.__module__}.{cls.__qualname__}",
        tuple((name, getattr(description, name)) for name in names),
        tuple(
            tuple(sorted((name, _constant(setting)) for name, setting in group.items()))
            for group in (description.defaults, *description.groups)
        ),
    )


def _constant(setting: Setting) -> Any:
    """A number that is compiled in; of a variable one only that it is variable."""
    return setting.value if setting.is_const else "variable"


def _environment() -> Iterator[tuple[str, str]]:
    for name, value in sorted(os.environ.items()):
        if not name.startswith(_PREFIXES) or name.endswith(_LOGS):
            continue
        if name not in _RUN_VARIABLES:
            yield name, value
