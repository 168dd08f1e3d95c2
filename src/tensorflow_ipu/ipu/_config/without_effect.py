"""Which options of a configuration have no effect although a program sets them.

In: an `IpuOptions` message, and the `IPUConfig` it would be without the program. Out:
lines in the log. Older calls set fields of the message past `IPUConfig`, so it is the
message that is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tensorflow.compiler.plugin.poplar.driver import threestate_pb2

from popple.session.poplar_options import ENGINE
from tensorflow_ipu._translate import (
    TRANSLATED,
    WITHOUT_EFFECT,
    note_without_effect,
)
from tensorflow_ipu._types import IpuOptions

from .protobuf import _Category, read_field

__all__ = ["name_unused_options"]

_MESSAGE = "IpuOptions."
# What `create_ipu_config` and its companions set where nobody asked for it.
_OLD_DEFAULTS: Mapping[str, Any] = {
    "profiling.enable_compilation_trace": True,
    "profiling.enable_io_trace": True,
    "profiling.max_report_size": 0x10000000,
    "remote_buffer_merging_mode": threestate_pb2.THREESTATE_OFF,
    "speed_size_config.merge_infeed_io_copies": False,
}
_OPERATORS = ("convolution_options", "matmul_options", "slice_options")


def name_unused_options(
    options: IpuOptions, config: _Category, is_message: bool
) -> None:
    """Name what `options` sets without effect; `config` has all at their defaults.

    `is_message`: they were not made from an IPUConfig, so older calls made them.
    """
    plain = config._create_protobuf()
    old = _OLD_DEFAULTS if is_message else {}
    for name, field in _without_effect(config):
        default = read_field(plain, field)
        if read_field(options, field) not in (default, old.get(field)):
            note_without_effect(name)
    for option in _options_of(options, _OPERATORS):
        if f"poplar_options.{option}" not in TRANSLATED:
            note_without_effect("poplar_options.*", option)
    for option in _options_of(options, ["compilation_options"]):
        known = ENGINE.get(option)
        if known is None or known.without_effect:
            note_without_effect("compilation_poplar_options.*", option)


def _without_effect(config: _Category) -> Iterator[tuple[str, str]]:
    """Options without effect and the fields of the message that they are."""
    for owner, attribute, metadata in config._options():
        name = f"IPUConfig.{metadata.name}"
        if name in WITHOUT_EFFECT:
            yield name, owner._fields[attribute].removeprefix("not ")
    for name in WITHOUT_EFFECT:
        if name.startswith(_MESSAGE):
            yield name, name.removeprefix(_MESSAGE)


def _options_of(options: IpuOptions, fields: Iterable[str]) -> list[str]:
    """The names of options of Poplar in these fields."""
    return [flag.option for field in fields for flag in getattr(options, field)]
