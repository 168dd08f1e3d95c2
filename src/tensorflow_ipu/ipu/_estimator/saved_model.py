"""Writes an estimator's model, with the values of a checkpoint, as a SavedModel.

In: the estimator, a function that makes the inputs for each mode, a checkpoint. Out: a
directory named after the time, with one graph per mode; it is there completely, or not
at all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import tensorflow.compat.v2 as tf
from tensorflow.python.saved_model import tag_constants
from tensorflow.python.saved_model.model_utils import export_utils

from .export import Receiver
from .mode_keys import ModeKeys
from .model_fn import EstimatorSpec

v1 = tf.compat.v1

_TAGS = {
    ModeKeys.TRAIN: [tag_constants.TRAINING],
    ModeKeys.EVAL: [tag_constants.EVAL],
    ModeKeys.PREDICT: [tag_constants.SERVING],
}

Inputs = Mapping[str, Callable[[], Receiver]]


class Model(Protocol):
    """What is exported: it builds itself for a mode into the graph in scope."""

    def exported(self, receiver: Receiver, mode: str) -> Any:
        """The specification of the model for inputs that a receiver has."""
        ...


def write(
    model: Model,
    base: str,
    inputs: Inputs,
    checkpoint: str,
    session_config: Any = None,
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
) -> bytes:
    """Write the model for every mode there are inputs for; the new directory.

    The first of training, evaluation and prediction has the variables of all.
    """
    place = export_utils.get_timestamped_export_dir(base)
    aside = export_utils.get_temp_export_dir(place)
    builder: Any = v1.saved_model.Builder(aside)
    modes = [mode for mode in _TAGS if mode in inputs]
    for mode in modes:
        with tf.Graph().as_default(), v1.Session(config=session_config) as session:
            graph = _build(model, inputs[mode], mode)
            if mode == modes[0]:
                graph["saver"].restore(session, checkpoint)
                builder.add_meta_graph_and_variables(session, **graph)
            else:
                builder.add_meta_graph(**graph)
    builder.save(as_text)
    _copy(assets_extra or {}, Path(os.fsdecode(aside), "assets.extra"))
    os.replace(aside, place)
    return tf.compat.as_bytes(place)


def _build(model: Model, make_inputs: Any, mode: str) -> dict[str, Any]:
    """Build the graph of a mode; the arguments with which it is written."""
    if make_inputs is None:
        raise ValueError(f"An input receiver function must be given for mode {mode!r}.")
    receiver = make_inputs()
    spec = model.exported(receiver, mode)
    scaffold = getattr(spec, "scaffold", None)
    return {
        "tags": _TAGS[mode],
        "signature_def_map": _signatures(receiver, spec, mode),
        "main_op": tf.group(v1.local_variables_initializer(), v1.tables_initializer()),
        "saver": (scaffold and scaffold.saver) or v1.train.Saver(sharded=True),
        "strip_default_attrs": True,
    }


def _signatures(
    receiver: Receiver, spec: EstimatorSpec, mode: str
) -> Mapping[str, Any]:
    outputs = export_utils.export_outputs_for_mode(
        mode,
        getattr(spec, "export_outputs", None),
        spec.predictions,
        spec.loss,
        dict(spec.eval_metric_ops or {}),
    )
    return export_utils.build_all_signature_defs(
        receiver.receiver_tensors,
        outputs,
        receiver.receiver_tensors_alternatives,
        serving_only=mode == ModeKeys.PREDICT,
    )


def _copy(sources: Mapping[str, str], folder: Path) -> None:
    """Copy files into a folder, by their paths inside it."""
    for name, source in sources.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
