"""Weights of a live session or model to a file, and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import dataset_extractor

__all__ = [
    "export_variables_from_live_model",
    "export_variables_from_live_session",
    "import_data_in_live_model",
    "import_data_in_live_session",
]


def export_variables_from_live_session(
    session: tf.compat.v1.Session, output_file: str, gc_metadata: str | None = None
) -> None:
    """Write the values that the global variables have in a session to a file.

    `gc_metadata` is the description of a compiled program, to be checked against.
    """
    with session.graph.as_default():
        variables = tf.compat.v1.global_variables()
        session.run(_make_export(variables, output_file, gc_metadata))


def export_variables_from_live_model(
    model: tf.keras.Model, output_file: str, gc_metadata: str | None = None
) -> None:
    """Write the variables of a Keras model to a file."""
    operation = _make_export(model.variables, output_file, gc_metadata)
    if not tf.executing_eagerly():
        tf.compat.v1.keras.backend.get_session().run(operation)


def import_data_in_live_session(
    session: tf.compat.v1.Session,
    data_files: Sequence[str],
    output_folder: str | None = None,
) -> None:
    """Give the global variables of a session the values that files have for them.

    If `output_folder` is given the session is saved there afterwards.
    """
    with session.graph.as_default():
        variables = tf.compat.v1.global_variables()
        session.run(_make_import(variables, data_files))
        if output_folder:
            tf.compat.v1.train.Saver().save(session, output_folder)


def import_data_in_live_model(
    model: tf.keras.Model, data_files: Sequence[str], output_folder: str | None = None
) -> None:
    """Give the variables of a Keras model the values that files have for them.

    If `output_folder` is given the model is saved there afterwards.
    """
    operations = _make_import(model.variables, data_files)
    if not tf.executing_eagerly():
        tf.compat.v1.keras.backend.get_session().run(operations)
    if output_folder:
        tf.saved_model.save(model, output_folder)


def _make_export(
    variables: Sequence[Any], output_file: str, gc_metadata: str | None
) -> Any:
    Path(output_file).parent.mkdir(parents=True, exist_ok=True)
    names = [variable.name.rpartition(":")[0] for variable in variables]
    return dataset_extractor.export_variables(
        variables, names, output_file, gc_metadata
    )


def _make_import(variables: Sequence[Any], data_files: Sequence[str]) -> list[Any]:
    return dataset_extractor.import_variables(
        variables, data_files, is_input=False, strict=False
    )
