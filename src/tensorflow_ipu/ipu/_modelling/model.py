"""From a traced program to its modelled cost: captured, placed, planned, simulated.

What its settings and the device's configuration become in the core is the business of
`tensorflow_ipu._translate` and, for kinds of ops, of `op_options`.
"""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf
from tensorflow.python.platform import tf_logging as logging

from popple import pipeline
from popple.capture.tensorflow import LowerRequest, lower_program
from popple.target import Target
from tensorflow_ipu._translate import model_options, with_chip_order

from .. import _device
from .program_settings import ProgramSettings
from .xla_names import name_compute_sets

__all__ = ["model", "write_report"]


def model(request: LowerRequest, settings: ProgramSettings) -> pipeline.Modelled:
    """Graph, program and simulation of one run."""
    lowered = lower_program(request)
    for remark in lowered.remarks:
        logging.info(f"{request.name}: {remark}")
    system = _device.system(settings.ordinal)
    num_ipus = lowered.graph.execution.num_chips
    target = Target(system, num_ipus, settings.num_replicas)
    configured = _device.get_options(settings.ordinal)
    options = model_options(lowered, settings, configured)
    graph = with_chip_order(lowered.graph, configured)
    return pipeline.model_graph(graph, target, options)


def write_report(
    modelled: pipeline.Modelled, directory: Path, num_runs: int = 1
) -> Path:
    """Write profile.pop and its companions, with so many runs."""
    return pipeline.write_report(
        modelled,
        directory,
        framework="tensorflow",
        framework_version=tf.__version__,
        num_runs=num_runs,
        name_compute_set=name_compute_sets(modelled.graph),
    )
