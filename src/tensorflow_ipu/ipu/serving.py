"""Exports models for serving, as SavedModels.

The signature of what is exported takes one batch and gives its results. On the device a
server keeps a loop of `iterations` steps busy; that, and where stages are placed, has
no influence on results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_ipu._former_arguments import IGNORED, refused, with_former
from tensorflow_ipu._types import Function

from ._executables import saved_models
from .ops import pipelining_ops
from .ops._pipeline import settings

__all__ = ["export_keras", "export_pipeline", "export_single_step"]


@with_former(
    input_signature="predict_step_signature",
    variable_initializer=refused("restore variables before the export"),
    checkpoint_restore_dir=refused("restore variables before the export"),
)
def export_single_step(
    predict_step: Callable[..., Any],
    export_dir: str,
    iterations: int,
    predict_step_signature: Any = None,
    input_dataset: Any = None,
    output_names: str | Sequence[str] | None = None,
    preprocessing_step: Callable[..., Any] | None = None,
    preprocessing_step_signature: Any = None,
    postprocessing_step: Callable[..., Any] | None = None,
    postprocessing_step_signature: Any = None,
    purge_export_dir: bool = False,
) -> Function:
    """Write a model of one function as a SavedModel; the function that it holds.

    Shapes come from the signatures, from a data set, or from `tf.function`. Steps
    before and after run on the host; each gets what the one before returned.
    """
    _check_iterations(iterations)
    saved_models.check_folder(export_dir, purge_export_dir)
    steps = _steps(
        ("predict_step", predict_step, predict_step_signature),
        ("preprocessing_step", preprocessing_step, preprocessing_step_signature),
        ("postprocessing_step", postprocessing_step, postprocessing_step_signature),
        input_dataset,
    )
    return saved_models.Export(steps, output_names).write(export_dir)


@with_former(
    input_signature="predict_step_signature",
    first_stage_signature="predict_step_signature",
    pipeline_depth=IGNORED,
    variable_initializer=refused("restore variables before the export"),
    checkpoint_restore_dir=refused("restore variables before the export"),
)
def export_pipeline(
    computational_stages: Sequence[Callable[..., Any]],
    export_dir: str,
    iterations: int,
    inputs: Sequence[Any] | None = None,
    device_mapping: Sequence[int] | None = None,
    pipeline_schedule: Any = None,
    poplar_options: Any = None,
    name: str | None = None,
    predict_step_signature: Any = None,
    input_dataset: Any = None,
    output_names: str | Sequence[str] | None = None,
    preprocessing_step: Callable[..., Any] | None = None,
    preprocessing_step_signature: Any = None,
    postprocessing_step: Callable[..., Any] | None = None,
    postprocessing_step_signature: Any = None,
    purge_export_dir: bool = False,
) -> Function:
    """Write a model in stages as a SavedModel; the function that it holds.

    The first stage gets `inputs`, the same each time, and then what is served.
    """
    _check_iterations(iterations)
    _check_pipeline(
        computational_stages=computational_stages,
        gradient_accumulation_count=iterations,
        device_mapping=device_mapping,
        pipeline_schedule=pipeline_schedule,
        forward_propagation_stages_poplar_options=poplar_options,
        name=name,
    )
    saved_models.check_folder(export_dir, purge_export_dir)
    first, *others = computational_stages
    fixed = list(inputs or ())
    steps = _steps(
        ("predict_step", first, predict_step_signature),
        ("preprocessing_step", preprocessing_step, preprocessing_step_signature),
        ("postprocessing_step", postprocessing_step, postprocessing_step_signature),
        input_dataset,
        fixed,
    )

    def run(*values: Any) -> list[Any]:
        found = saved_models.as_list(first(*fixed, *values))
        for stage in others:
            found = saved_models.as_list(stage(*found))
        return found

    stages = [
        saved_models.Step(step.name, run, step.signature)
        if step.name == "predict_step"
        else step
        for step in steps
    ]
    return saved_models.Export(stages, output_names).write(export_dir)


def export_keras(
    model: Any,
    export_dir: str,
    batch_size: int | None = None,
    output_names: str | Sequence[str] | None = None,
    preprocessing_step: Callable[..., Any] | None = None,
    preprocessing_step_signature: Any = None,
    postprocessing_step: Callable[..., Any] | None = None,
    postprocessing_step_signature: Any = None,
    purge_export_dir: bool = False,
) -> Function:
    """Write the predictions of a Keras model as a SavedModel; see its method."""
    if not hasattr(model, "export_for_ipu_serving"):
        raise ValueError(
            "The model was not made in the scope of an IPUStrategy, so it cannot be"
            " exported. Create it inside `strategy.scope()`."
        )
    return model.export_for_ipu_serving(
        export_dir,
        batch_size,
        output_names,
        preprocessing_step,
        preprocessing_step_signature,
        postprocessing_step,
        postprocessing_step_signature,
        purge_export_dir,
    )


Given = tuple[str, Callable[..., Any] | None, Any]


def _steps(
    predict: tuple[str, Callable[..., Any], Any],
    before: Given,
    after: Given,
    dataset: Any,
    inputs: Sequence[Any] = (),
) -> list[saved_models.Step]:
    """The steps to export, all checked. The data set describes the first."""
    for name, _, signature in (before, after, predict):
        saved_models.check_signature(f"{name}_signature", signature)
    first = predict if before[1] is None else before
    saved_models.check_dataset(dataset, first[2], first[0])
    steps: list[saved_models.Step] = []
    for name, function, signature in (before, predict, after):
        if function is not None:
            described = dataset if name == first[0] else None
            fixed = inputs if name == predict[0] else ()
            steps.append(
                saved_models.step_of(name, function, signature, described, fixed)
            )
    return steps


def _check_iterations(iterations: int) -> None:
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, but it is {iterations}")


def _check_pipeline(**given: Any) -> None:
    """Refuse what `pipelining_ops.pipeline` would refuse."""
    parameters = inspect.signature(pipelining_ops.pipeline).parameters.values()
    defaults = {parameter.name: parameter.default for parameter in parameters}
    settings.settings_of({**defaults, **given})
