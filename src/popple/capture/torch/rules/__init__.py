"""Rules of torch functions while forward is traced for the device.

mode           one mode that sees every function of torch that forward calls
static_forms   functions that look at values, in forms that do not
refusals       functions that the device lacks, tensors of the host, errors of tracing
weight_casts   weights that follow the element type of their input
index_types    classes and indices of every integer type
group_norm     groups that stride over channels
"""

from popple.capture.torch.rules.mode import device_rules
from popple.capture.torch.rules.refusals import (
    DynamicShape,
    Unsupported,
    ValueNeeded,
    explained_errors,
)

__all__ = [
    "DynamicShape",
    "Unsupported",
    "ValueNeeded",
    "device_rules",
    "explained_errors",
]
