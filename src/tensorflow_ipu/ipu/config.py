"""`IPUConfig`, and how it comes into force.

In: the options of a program. Out: the IPU system configured with them, that is, one
TensorFlow device for each entry of `auto_select_ipus` or `select_ipus`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow.compiler.plugin.poplar.driver import config_pb2
from tensorflow.compiler.plugin.poplar.driver.config_pb2 import IpuOptions
from tensorflow.python.platform import tf_logging as logging

from tensorflow_ipu._types import Message

from . import _device
from ._config.device import (
    _DeviceConnection,
    _Experimental,
    _FloatingPointBehaviour,
    _IOTiles,
    _IPUModel,
)
from ._config.enums import (
    DeviceConnectionType,
    ExecutionProfileType,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from ._config.metadata import AttributeMetadata
from ._config.program import (
    _Convolutions,
    _Matmuls,
    _Norms,
    _Optimizations,
    _Pooling,
    _Scheduling,
    _Slices,
)
from ._config.protobuf import _Category
from ._config.tree import (
    _ConfigBase,
    deprecate_config_attribute,
    deprecate_config_attributes,
)
from ._config.without_effect import name_unused_options
from ._device.poplar_flags import running_on_ipu_model
from ._modelling import op_options

__all__ = [
    "AttributeMetadata",
    "DeviceConnectionType",
    "ExecutionProfileType",
    "IPUConfig",
    "IpuOptions",
    "MergeRemoteBuffersBehaviour",
    "SchedulingAlgorithm",
    "SelectionOrder",
    "StochasticRoundingBehaviour",
    "_ConfigBase",
    "configure_ipu_system",
    "deprecate_config_attribute",
    "deprecate_config_attributes",
    "get_ipu_config",
    "reset_ipu_configuration",
    "running_on_ipu_model",
]


class IPUConfig(_Category):
    """All options of the IPU system. They count from `configure_ipu_system` on."""

    _fields: Mapping[str, str] = {
        "allow_recompute": "speed_size_config.allow_recompute",
        "selection_order": "selection_order",
        "serialization_output_folder": "serialization_folder",
        "compilation_poplar_options": "compilation_options",
        "gcl_poplar_options": "gcl_options",
    }

    def __init__(self) -> None:
        self._declare_options()
        self._declare_selection()
        self._declare_operators()
        self._declare_hardware()
        self._finalize_base_config()

    def _declare_options(self) -> None:
        """
        Compute values again in the backward pass where that saves memory, as far as it
        changes no result.
        """
        self.allow_recompute = False
        """
        Which IPU of a device takes which shard: a
        :py:class:`~tensorflow.python.ipu.config.SelectionOrder`.
        """
        self.selection_order = SelectionOrder.AUTO
        """
        Folder for executables of Poplar. Popple writes none and says so.
        """
        self.serialization_output_folder = ""
        """
        Options of Poplar's engine: names and values, both text. "autoReport.all" and
        others of that kind ask for a report.
        """
        self.compilation_poplar_options = {}
        """
        Options of the library that replicas exchange data with.
        """
        self.gcl_poplar_options = {}

    def _declare_selection(self) -> None:
        """
        Configure the IPUs to be used by the program, by number. An integer makes one
        TensorFlow device, `/device:IPU:0`, of that many IPUs; a list makes one device
        for each of its entries.

        .. code-block:: python

          config = IPUConfig()
          # One device with 4 IPUs.
          config.auto_select_ipus = 4
          # Two devices, one with 1 IPU and one with 2.
          config.auto_select_ipus = [1, 2]
        """
        self.auto_select_ipus: int | list[int] | tuple[int, ...] = []
        """
        Configure the IPUs to be used by the program, by id. An id, as `gc-info -l`
        lists them, stands for one IPU or for a group of IPUs that are linked to each
        other: on a Pod16, 0 to 15 are single IPUs, 16 to 23 pairs, 24 to 27 groups of
        four, 28 and 29 groups of eight and 30 is all of them.

        .. code-block:: python

          config = IPUConfig()
          # One device with the 16 IPUs of a Pod16.
          config.select_ipus = 30
          # Two devices with four IPUs each.
          config.select_ipus = [24, 25]
        """
        self.select_ipus: int | list[int] | tuple[int, ...] = []

    def _declare_operators(self) -> None:
        """
        Options of convolutions.
        """
        self.convolutions = _Convolutions()
        """
        Options of slices.
        """
        self.slices = _Slices()
        """
        Options of matrix multiplications.
        """
        self.matmuls = _Matmuls()
        """
        Options of norms: batch, layer, group and instance norms.
        """
        self.norms = _Norms()
        """
        Trades of memory against speed.
        """
        self.optimizations = _Optimizations()
        """
        Options of pooling.
        """
        self.pooling = _Pooling()
        """
        How operators are ordered.
        """
        self.scheduling = _Scheduling()

    def _declare_hardware(self) -> None:
        """
        When and to what the program attaches.
        """
        self.device_connection = _DeviceConnection()
        """
        Options that may change or go at any time.
        """
        self.experimental = _Experimental()
        """
        The floating point control register of the IPU.
        """
        self.floating_point_behaviour = _FloatingPointBehaviour()
        """
        Tiles that do nothing but input and output.
        """
        self.io_tiles = _IOTiles()
        """
        The IPU Model, which is used if TF_POPLAR_FLAGS has `--use_ipu_model`.
        """
        self.ipu_model = _IPUModel()

    def configure_ipu_system(self, device: str = "cpu") -> None:
        """Bring this configuration into force."""
        configure_ipu_system(self, device)

    def _create_protobuf(self) -> IpuOptions:
        """The options as the back end gets them."""
        pb = IpuOptions(creator_id=config_pb2.IpuOptionsCreator.Value("IPU_UTILS"))
        self._to_protobuf(pb)
        return pb

    def _check(self) -> None:
        if self.auto_select_ipus and self.select_ipus:
            raise Exception(
                "`auto_select_ipus` and `select_ipus` both choose devices: only one of "
                "them can be set."
            )
        for name in ("auto_select_ipus", "select_ipus"):
            if isinstance(getattr(self, name), int):
                setattr(self, name, [getattr(self, name)])
        self._check_ids()
        group_size = self.norms.experimental.distributed_batch_norm_replica_group_size
        if self.io_tiles.num_io_tiles > 0 and group_size > 1:
            raise ValueError(
                "A norms.experimental.distributed_batch_norm_replica_group_size above "
                "1 is not supported with I/O tiles. Set one of them only."
            )

    def _check_ids(self) -> None:
        ids = _as_list(self.select_ipus)
        if len(set(ids)) != len(ids):
            raise ValueError(f"`select_ipus` has an id more than once: {ids}.")
        if ids and running_on_ipu_model():
            raise Exception(
                "When using the IPUModel, the devices to attach to can only be "
                "numbered, with `auto_select_ipus`: a model has no ids."
            )

    def _to_protobuf(self, pb: Message) -> None:
        super()._to_protobuf(pb)
        for id in _as_list(self.select_ipus):
            pb.device_config.add(cfg_index=id)
        for count in _as_list(self.auto_select_ipus):
            pb.device_config.add(auto_count=count)


def _as_list(chosen: int | list[int] | tuple[int, ...]) -> list[int]:
    return [chosen] if isinstance(chosen, int) else list(chosen)


# Writes the documentation of the class.
IPUConfig()


def configure_ipu_system(
    config: IPUConfig | IpuOptions,
    device: str = "cpu",
    reset_configuration: bool = True,
) -> None:
    """Bring an `IPUConfig`, or an `IpuOptions` message, into force.

    If another one is in force it is reset first, with a warning; without
    `reset_configuration` that is an error. `device` is there for compatibility.
    """
    options = config._create_protobuf() if isinstance(config, IPUConfig) else config
    if not isinstance(options, IpuOptions):
        raise TypeError("`config` must be an IpuOptions instance.")
    existing = _device.list_options()
    is_other = bool(existing) and existing[0] != options
    if reset_configuration and is_other and existing[0].device_config:
        logging.warn(
            "Resetting existing IPU configuration: another one takes its place"
        )
        reset_ipu_configuration()
    op_options.check_options(options)
    name_unused_options(options, IPUConfig(), is_message=options is config)
    _device.configure(options)


def reset_ipu_configuration() -> None:
    """Let go of all IPUs and forget the configuration, if there is one."""
    _device.reset()


def get_ipu_config(session: Any = None) -> list[Any]:
    """The `IpuOptions` in force, once for each TensorFlow device.

    `session` is there for compatibility: there is one configuration for a process.
    """
    found = _device.list_options()
    if not any(options.device_config for options in found):
        raise RuntimeError("No IPU devices configured.")
    return [_copied(options) for options in found]


def _copied(options: IpuOptions) -> IpuOptions:
    copied = IpuOptions()
    copied.CopyFrom(options)
    return copied
