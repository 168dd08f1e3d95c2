"""Writes a model as a SavedModel for serving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tensorflow_ipu._types import Function

__all__ = ["export"]


def export(
    model: tf.keras.Model,
    export_dir: str,
    batch_size: int | None,
    *,
    output_names: str | Sequence[str] | None = None,
    preprocessing_step: Any = None,
    preprocessing_step_signature: Sequence[tf.TensorSpec] | None = None,
    postprocessing_step: Any = None,
    postprocessing_step_signature: Sequence[tf.TensorSpec] | None = None,
    purge_export_dir: bool = False,
) -> Function:
    """Export the predictions of `model` for batches of one size."""
    # Serving is rarely wanted and heavy to load.
    from tensorflow.python.ipu._executables import saved_models

    saved_models.check_folder(export_dir, purge_export_dir)
    steps = [saved_models.Step("predict_step", *_prediction(model, batch_size))]
    around = {
        "preprocessing_step": (preprocessing_step, preprocessing_step_signature),
        "postprocessing_step": (postprocessing_step, postprocessing_step_signature),
    }
    for name, (function, signature) in around.items():
        saved_models.check_signature(f"{name}_signature", signature)
        if function is not None:
            step = saved_models.step_of(name, function, signature)
            place = 0 if name == "preprocessing_step" else len(steps)
            steps.insert(place, step)
    return saved_models.Export(steps, output_names).write(export_dir)


def _prediction(
    model: tf.keras.Model, batch_size: int | None
) -> tuple[Any, list[tf.TensorSpec]]:
    """The model as a function of its inputs one by one, and their specs."""
    structure = model.save_spec(dynamic_batch=False)
    signature = input_signature(model, batch_size)

    def predict(*inputs: Any) -> list[tf.Tensor]:
        given = tf.nest.pack_sequence_as(structure[0], inputs)
        return tf.nest.flatten(model(given, training=False))

    return predict, signature


def input_signature(
    model: tf.keras.Model, batch_size: int | None
) -> list[tf.TensorSpec]:
    """Shapes and types of the model's inputs, all dimensions known."""
    saved = model.save_spec(dynamic_batch=False)
    if saved is None:
        raise RuntimeError(
            "Cannot get model's input signature. Build the model with "
            "`model.build()`, or call it on data, before it is exported."
        )
    specs = []
    for spec in tf.nest.flatten(saved[0]):
        shape = spec.shape.as_list()
        if batch_size is not None:
            shape[0] = batch_size
        if None in shape:
            raise ValueError(
                f"The shape {shape} of an input is not fully known. Give the inputs of "
                "the model a batch size, or `batch_size` when it is exported."
            )
        specs.append(tf.TensorSpec(shape, spec.dtype, spec.name))
    return specs
