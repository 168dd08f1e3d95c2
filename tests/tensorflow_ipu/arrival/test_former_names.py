"""Names and arguments of older releases: served, or refused with a successor."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

# Loaded with this file: another test of the folder unloads what it was first to load,
# and gradients can be registered once only.
import keras.ipu._old_models  # noqa: E402, F401
from tensorflow.python import ipu  # noqa: E402

from popple.errors import UsageError  # noqa: E402
from tensorflow_ipu._former_arguments import (  # noqa: E402
    FORMER_ARGUMENTS,
    IGNORED,
    refused,
    with_former,
)
from tensorflow_ipu._option_tables import REFUSED  # noqa: E402

LINES = (Path(__file__).parent / "former_names.txt").read_text().splitlines()
ROWS = [line.split(" ", 1) for line in LINES if not line.startswith("#")]

# What no class has: attributes and properties of instances, methods that models get in
# the scope of a strategy, and three helpers of layers that no program called.
OF_INSTANCES = {
    "tensorflow.keras.Model.set_gradient_accumulation_options",
    "tensorflow.keras.Model.set_pipelining_options",
    "tensorflow.python.ipu.config.IPUConfig.floating_point_behaviour.esr",
    "tensorflow.python.ipu.config.IPUConfig.optimizations.enable_fast_math",
    "tensorflow.python.ipu.config.IPUConfig.optimizations.merge_infeed_io_copies",
    "tensorflow.python.ipu.keras.FunctionalLayerPipelineStageAssignment.pipeline_stage",
    "tensorflow.python.ipu.keras.SequentialLayerPipelineStageAssignment.pipeline_stage",
    "tensorflow.python.ipu.keras.extensions.ModelLayerPipelineStageAssignment"
    ".pipeline_stage",
    "tensorflow.python.ipu.keras.layers.PopnnGRU.state_shape",
    "tensorflow.python.ipu.keras.layers.PopnnLSTM.get_bias",
    "tensorflow.python.ipu.keras.layers.PopnnLSTM.state_shape",
}


def resolved(name: str) -> Any:
    """What a full name stands for; a refusal is raised."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for end, part in enumerate(parts[1:], start=2):
        # As a module first: asking `tensorflow` for `contrib` would make it version 1.
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            found = getattr(found, part)
    return found


def outcome(name: str, argument: str) -> str:
    """Served, or the words that refuse it, or what is wrong."""
    try:
        found = resolved(name)
    except UsageError as error:
        return str(error)
    if not argument or takes(found, argument):
        return "served"
    return f"{name} does not take {argument}"


def takes(function: Any, argument: str) -> bool:
    owner = f"{function.__module__}.{function.__qualname__}"
    parameters = inspect.signature(function).parameters.values()
    names = {parameter.name for parameter in parameters}
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return is_open or argument in names | set(FORMER_ARGUMENTS.get(owner, ()))


def test_every_name_and_argument_is_served_or_refused_with_a_successor() -> None:
    wrong = []
    for _, full in ROWS:
        name, _, argument = full.removesuffix(")").rstrip("=").partition("(")
        if name not in OF_INSTANCES:
            found = outcome(name, argument.lstrip("*"))
            if found != "served" and " Use " not in found:
                wrong.append(f"{full}: {found}")
    assert len(ROWS) > 550
    assert not wrong


def test_what_belongs_to_instances_is_there() -> None:
    config = ipu.config.IPUConfig()
    assert config.optimizations.merge_infeed_io_copies
    assert not config.optimizations.enable_fast_math
    assert config.floating_point_behaviour.esr.name == "OFF"
    for method in ("set_gradient_accumulation_options", "set_pipelining_options"):
        assert f"{method}.experimental_normalize_gradients" in REFUSED
    assignment = ipu.keras.FunctionalLayerPipelineStageAssignment(None, 0, 3)
    assert assignment.pipeline_stage == 3


def test_refusals_name_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"ALSOptimizer"):
        _ = ipu.keras.optimizers.AutomaticLossScalingOptimizer
    with pytest.raises(ImportError, match=r"sharding_utils went .* Use ipu.scopes"):
        importlib.import_module("tensorflow.python.ipu.sharding_utils")
    assert not hasattr(ipu.summary_ops, "get_ipu_reports")


def test_former_arguments_are_translated_once_ignored_or_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @with_former(depth="count", colour=IGNORED, scale=refused("multiply it yourself"))
    def made(count: int = 0) -> int:
        return count

    build: Any = made  # a checker sees the arguments of today only
    assert [build(depth=3), build(depth=4), build(1, colour="red")] == [3, 4, 1]
    assert [
        record.getMessage().rpartition("made ")[2] for record in caplog.records
    ] == [
        "is called `count` today.",
        "has no effect: leave it out.",
    ]
    with pytest.raises(TypeError, match=r"`scale` .* multiply it yourself"):
        build(scale=2)
    with pytest.raises(ValueError, match="both `count` and `depth`"):
        build(count=1, depth=2)
