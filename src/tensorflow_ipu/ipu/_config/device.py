"""Categories that say what a program runs on and how the hardware behaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow_ipu import _notices
from tensorflow_ipu._types import Message

from .._device.poplar_flags import running_on_ipu_model
from .enums import DeviceConnectionType, StochasticRoundingBehaviour
from .protobuf import _Category


class _DeviceConnection(_Category):
    """When to attach, and to what kind of IPU."""

    _fields: Mapping[str, str] = {
        "type": "device_connection_type",
        "version": "ipu_version",
        "enable_remote_buffers": "enable_remote_buffers_without_device",
    }

    def __init__(self) -> None:
        """
        When the program attaches to its IPUs: a
        :py:class:`~tensorflow.python.ipu.config.DeviceConnectionType`.
        """
        self.type = DeviceConnectionType.ALWAYS
        """
        Version of the IPU hardware: "ipu1", "ipu2" or "ipu21". It is needed if the type
        is `PRE_COMPILE` or `NEVER`, because then there is no device to ask.
        """
        self.version = ""
        """
        Whether the machine that will run the program has remote buffers. It matters
        only if the type is not `ALWAYS`; otherwise the device is asked.
        """
        self.enable_remote_buffers = False

    def _check(self) -> None:
        offline = (DeviceConnectionType.PRE_COMPILE, DeviceConnectionType.NEVER)
        if self.type in offline and self.version == "":
            raise ValueError(
                f"{self._get_full_name('version')} must be set when "
                f"{self._get_full_name('type')} is {self.type}, because no device can "
                "be asked for it."
            )


class _IPUModel(_Category):
    """The simulated IPU."""

    _fields: Mapping[str, str] = {
        "compile_ipu_code": "ipu_model_config.compile_ipu_code",
        "tiles_per_ipu": "ipu_model_config.tiles_per_ipu",
        "version": "ipu_model_config.ipu_model_version",
    }

    def __init__(self) -> None:
        """
        Whether the memory that code takes on the IPU is counted.
        """
        self.compile_ipu_code = False
        """
        Tiles of an IPU Model; 0 stands for the number that the version has.
        """
        self.tiles_per_ipu = 0
        """
        Specify the IPU version to be used by the IPU Model: "ipu1", "ipu2" or "ipu21".
        """
        self.version = "ipu2"

    def _check(self) -> None:
        if self.version == "" and running_on_ipu_model():
            name = self._get_full_name("version")
            raise ValueError(f"{name} must be set when the IPU Model is used.")


class _FloatingPointBehaviour(_Category):
    """What happens when arithmetic goes wrong, and how results are rounded."""

    def __init__(self) -> None:
        """
        Invalid operations, as IEEE 754 defines them, raise an exception.
        """
        self.inv = False
        """
        Divisions by zero raise an exception.
        """
        self.div0 = False
        """
        Results that are too large raise an exception.
        """
        self.oflo = False
        """
        Stochastic rounding of float16 results: a
        :py:class:`~tensorflow.python.ipu.config.StochasticRoundingBehaviour`.
        """
        self.esr = StochasticRoundingBehaviour.OFF
        """
        A float16 result that is too large becomes NaN instead of the largest number.
        """
        self.nanoo = False
        """
        Turns all of the above on, whatever they are set to.
        """
        self.set_all = False

    def _change(self, k: str, v: Any) -> None:
        if k == "esr" and isinstance(v, bool):  # as until SDK 2.4
            v = StochasticRoundingBehaviour.from_bool(v)
            name = self._get_full_name(k)
            _notices.warn(f"`{name}` is a StochasticRoundingBehaviour today: {v.name}.")
        super()._change(k, v)

    def _to_protobuf(self, pb: Message) -> None:
        target = pb.floating_point_behaviour
        for name in ("inv", "div0", "oflo", "nanoo"):
            setattr(target, name, self.set_all or getattr(self, name))
        esr = StochasticRoundingBehaviour.ON if self.set_all else self.esr
        target.esr = esr.value


class _IOTiles(_Category):
    """Tiles that do nothing but input and output."""

    _fields: Mapping[str, str] = {
        "num_io_tiles": "num_io_tiles",
        "place_ops_on_io_tiles": "place_ops_on_io_tiles",
        "available_memory_proportion": "io_tile_available_memory_proportion",
    }

    def __init__(self) -> None:
        """
        Number of tiles kept for input and output.
        """
        self.num_io_tiles = 0
        """
        Whether operators that move data to and from the host run on those tiles.
        """
        self.place_ops_on_io_tiles = False
        """
        The part of the memory of those tiles that data may take; the rest is for code.
        Operators whose data needs more are not placed on them.
        """
        self.available_memory_proportion = 0.9

    def _check(self) -> None:
        if self.place_ops_on_io_tiles and self.num_io_tiles == 0:
            name = self._get_full_name("num_io_tiles")
            raise ValueError(f"Cannot place ops on I/O tiles when {name} is 0.")


class _MultiReplicaDistribution(_Category):
    """Replicas of one program in several processes."""

    _fields: Mapping[str, str] = {
        "process_index": "multi_replica_process_index",
        "process_count": "multi_replica_process_count",
    }

    def __init__(self) -> None:
        """
        Number of this process, from 0.
        """
        self.process_index = 0
        """
        Number of processes that run the program together; 0 if it runs in this one.
        """
        self.process_count = 0

    def _check(self) -> None:
        if self.process_count > 0 and running_on_ipu_model():
            raise Exception(
                f"{self._get_full_name('process_count')} is {self.process_count}, but "
                "several processes are not supported on the IPU model. Set it to 0."
            )
        if self.process_count and not 0 <= self.process_index < self.process_count:
            raise ValueError(
                f"{self._get_full_name('process_index')} must be in the range "
                f"[0, {self.process_count}), but is {self.process_index}."
            )


class _Experimental(_Category):
    """Options that may change or go at any time."""

    _fields: Mapping[str, str] = {
        "always_rearrange_copies_on_the_host": (
            "speed_size_config.always_rearrange_copies_on_the_host"
        ),
        "enable_remote_buffer_embedding": "enable_experimental_remote_buffer_embedding",
        "enable_prng_stability": "enable_experimental_prng_stability",
    }

    def __init__(self) -> None:
        """
        Data that lies differently on host and device is rearranged on the host, which
        saves work on the device and costs latency.
        """
        self.always_rearrange_copies_on_the_host = False
        """
        :py:class:`~tensorflow.python.ipu.embedding_ops.HostEmbedding` keeps its table
        in remote buffers, split over the replicas, instead of asking the host.
        """
        self.enable_remote_buffer_embedding = False
        """
        Random numbers stay the same on all replicas where the program needs that.
        """
        self.enable_prng_stability = False
        """
        Run the replicas of one program in several processes. `popdist` and `poprun` set
        this; all processes must be given the same program.
        """
        self.multi_replica_distribution = _MultiReplicaDistribution()
