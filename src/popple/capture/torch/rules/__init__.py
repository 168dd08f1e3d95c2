"""What is different about torch inside forward while a model is traced for the device.

mode           one mode that sees every function of torch that forward calls
static_forms   functions that look at values, in forms that do not
refusals       functions that the device lacks, and errors of tracing in words
host_tensors   tensors that forward makes on the host
weight_casts   weights that follow the element type of their input
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
