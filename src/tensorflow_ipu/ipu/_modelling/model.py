"""From a traced program to what its cost is modelled from: graph, options, target.

What its settings and the device's configuration become in the core is the business of
`tensorflow_ipu._translate` and, for kinds of ops, of `op_options`.
"""

from __future__ import annotations

from dataclasses import replace

import tensorflow.compat.v2 as tf
from tensorflow.python.platform import tf_logging as logging

from popple.capture.tensorflow import LowerRequest, lower_program
from popple.session import CostRequest
from popple.target import Target
from tensorflow_ipu._translate import model_options, with_chip_order
from tensorflow_ipu._types import IpuOptions

from .. import _device
from .program_settings import ProgramSettings
from .synthetic_data import synthetic_names
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
        options=replace(
            model_options(lowered, settings, configured),
            synthetic=synthetic_names(lowered),
            vertex_code=_has_code(configured),
        ),
        target=Target(
            _device.system(settings.ordinal), num_ipus, settings.num_replicas
        ),
        framework="tensorflow",
        framework_version=tf.__version__,
        name_compute_sets=name_compute_sets,
    )


def _has_code(configured: IpuOptions) -> bool:
    """Whether code is compiled: hardware needs it, the IPU Model if it is asked for."""
    is_asked = configured.ipu_model_config.compile_ipu_code
    return is_asked or not _device.use_ipu_model()
