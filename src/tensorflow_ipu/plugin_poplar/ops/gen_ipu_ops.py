"""Raw operators that configure devices and tell about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from tensorflow.compiler.plugin.poplar.driver import config_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.ipu import _device
from tensorflow.python.ipu._device import poplar_flags, seeds, trace_events

from . import _host


def ipu_configure_hardware(config: bytes, name: str | None = None) -> Any:
    """Bring serialised `IpuOptions` into force."""
    options = config_pb2.IpuOptions.FromString(config)
    return _host.action(lambda: _device.configure(options), name)


def ipu_reset_devices(name: str | None = None) -> Any:
    """Let go of all IPUs and forget the configuration."""
    return _host.action(_device.reset, name)


def ipu_clear_all_xla_compilation_caches(name: str | None = None) -> Any:
    """Forget compiled programs: each is compiled again when it runs next."""
    return _host.action(_device.forget_programs, name)


def ipu_reset_seed(
    device: str, seed: int, identical_replicas: bool = False, name: str | None = None
) -> Any:
    """Start the random numbers of a device anew."""
    ordinal = _device.ordinal_of(device)
    return _host.action(lambda: seeds.reset(seed, ordinal, identical_replicas), name)


def ipu_event_trace(name: str | None = None) -> Any:
    """Serialised `IpuTraceEvent` messages: what happened since the last call."""
    return _host.texts(trace_events.drain, name)


def ipu_model_used(name: str | None = None) -> Any:
    """Whether programs run on the IPU Model, as a vector of one."""
    return _host.value(
        lambda: np.array([_device.use_ipu_model()]), dtypes.bool, [1], name
    )


def ipu_get_configuration(name: str | None = None) -> Any:
    """Serialised `IpuOptions`, one for each configured device."""
    return _host.texts(
        lambda: [options.SerializeToString() for options in _device.list_options()],
        name,
    )


def ipu_get_num_devices(device: str, name: str | None = None) -> Any:
    """Number of IPUs in a device, over all processes of its program."""
    ordinal = _device.ordinal_of(device)
    return _host.value(
        lambda: np.int64(_device.num_ipus_of_all_processes(ordinal)),
        dtypes.int64,
        [],
        name,
    )


def ipu_use_synthetic_data_for(
    synthetic_data_category: int, name: str | None = None
) -> Any:
    """Whether data of that kind is made up, as a vector of one."""
    category = poplar_flags.Category(synthetic_data_category)
    return _host.value(
        lambda: np.array([poplar_flags.uses_synthetic_data(category)]),
        dtypes.bool,
        [1],
        name,
    )
