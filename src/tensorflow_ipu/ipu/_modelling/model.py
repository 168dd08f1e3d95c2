"""From a traced program to what its cost is modelled from: graph, options, target.

What its settings and the device's configuration become in the core is the business of
`tensorflow_ipu._translate` and, for kinds of ops, of `op_options`.
"""

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.platform import tf_logging as logging

from popple.capture.tensorflow import LowerRequest, lower_program
from popple.session import CostRequest
from popple.target import Target
from tensorflow_ipu._translate import model_options, with_chip_order

from .. import _device
from .program_settings import ProgramSettings
from .xla_names import name_compute_sets

__all__ = ["cost_request"]


def cost_request(request: LowerRequest, settings: ProgramSettings) -> CostRequest:
    """The captured program, and how and on what machine one run of it is modelled."""
    lowered = lower_program(request)
    for remark in lowered.remarks:
        logging.info(f"{request.name}: {remark}")
    num_ipus = lowered.graph.execution.num_chips
    configured = _device.get_options(settings.ordinal)
    return CostRequest(
        graph=with_chip_order(lowered.graph, configured),
        options=model_options(lowered, settings, configured),
        target=Target(
            _device.system(settings.ordinal), num_ipus, settings.num_replicas
        ),
        framework="tensorflow",
        framework_version=tf.__version__,
        name_compute_sets=name_compute_sets,
    )
