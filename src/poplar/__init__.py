"""What programs ask of Poplar itself: targets and devices.

    target = poplar.Target.createIPUTarget(1, "ipu2")
    manager = poplar.DeviceManager.createDeviceManager()
    device = manager.getDevices(poplar.TargetType.IPU, 4)[0]

Graphs, programs and engines are not there: Poplar's are written in C++. Asking for them
says so, and what to use instead.
"""

from __future__ import annotations

from typing import Any

from poplar._device import Device, DeviceManager
from poplar._target import Target, TargetType

__all__ = ["Device", "DeviceManager", "Target", "TargetType"]


# Names of Poplar that programs import and that are not here.
_CPP_ONLY = (
    "ComputeSet",
    "DataStream",
    "Engine",
    "Executable",
    "Function",
    "Graph",
    "OptionFlags",
    "Tensor",
    "Type",
    "VertexRef",
    "program",
)


def __getattr__(name: str) -> Any:
    text = (
        f"Popple's poplar has no {name!r}: it has {', '.join(__all__)}. Programs are "
        "written with poptorch or tensorflow.python.ipu; there are no C++ headers such "
        "as poplar/Engine.hpp to compile against. 'popple doctor' shows what is "
        "installed."
    )
    if name in _CPP_ONLY:
        # `from poplar import Engine` would replace the text of an AttributeError.
        raise ImportError(text, name="poplar")
    raise AttributeError(text)
