"""Whether a program shows that it is of an older release, by how it configures the IPU.

Where two releases disagree the newest wins, unless a program is visibly older: then it
gets what its own release did.
"""

from __future__ import annotations

from tensorflow.compiler.plugin.poplar.driver.config_pb2 import IpuOptions

from .. import _device

__all__ = ["is_of_create_ipu_config", "shows_age"]


def shows_age() -> bool:
    """Whether the system was configured with `create_ipu_config` (before 2.4)."""
    return any(map(is_of_create_ipu_config, _device.list_options()))


def is_of_create_ipu_config(options: object) -> bool:
    """Whether options are a message of `create_ipu_config`.

    An `IPUConfig` has no attribute for the largest report, so it never sets this one.
    """
    return isinstance(options, IpuOptions) and options.profiling.max_report_size > 0
