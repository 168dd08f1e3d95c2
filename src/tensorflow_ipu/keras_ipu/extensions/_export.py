"""Writes a model as a SavedModel for serving."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

__all__ = ["export"]


def export(
    model: Any, export_dir: str, batch_size: int | None, **options: Any
) -> Any:
    """Export the predictions of `model` for batches of one size."""
    # Serving is rarely wanted and heavy to load.
    from tensorflow.python.ipu import serving

    signature = input_signature(model, batch_size)
    return serving.export_keras(model, export_dir, input_signature=signature, **options)


def input_signature(model: Any, batch_size: int | None) -> list[tf.TensorSpec]:
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
                "Not all dimensions of inputs can be determined. Give the inputs of the "
                "model a batch size, or `batch_size` when it is exported."
            )
        specs.append(tf.TensorSpec(shape, spec.dtype, spec.name))
    return specs
