"""How an estimator uses the IPU."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow_ipu._former_arguments import IGNORED, with_former

from ._estimator import run_config
from .config import IPUConfig, IpuOptions


class _Fields(NamedTuple):
    """The fields of an :class:`IPURunConfig`, in their order."""

    iterations_per_loop: int
    ipu_options: Any
    num_replicas: int
    num_shards: int
    ordinal: int
    prefetch_depth: int | None


class IPURunConfig(_Fields):
    """Which IPUs an estimator uses, and how many steps it runs at a time on them."""

    @with_former(compile_summary=IGNORED, autosharding=IGNORED)
    def __new__(
        cls,
        iterations_per_loop: int = 1,
        ipu_options: IPUConfig | IpuOptions | None = None,
        num_replicas: int = 1,
        num_shards: int = 1,
        ordinal: int = 0,
        prefetch_depth: int | None = None,
    ) -> IPURunConfig:
        for name, count in (
            ("iterations_per_loop", iterations_per_loop),
            ("num_replicas", num_replicas),
            ("num_shards", num_shards),
        ):
            if count < 1:
                raise ValueError(f"{name} (got {count}) must be positive.")
        num_devices = num_replicas * num_shards
        if num_devices > 1 and ipu_options is None:
            raise ValueError(
                "IPU configuration requires more than one device, but `ipu_options` is"
                " None: give an IPUConfig that selects them."
            )
        if ipu_options is not None:
            chosen = num_selected(ipu_options, ordinal) or num_devices
            check_devices(num_replicas, num_shards, chosen)
        return super().__new__(
            cls,
            iterations_per_loop,
            ipu_options,
            num_replicas,
            num_shards,
            ordinal,
            prefetch_depth,
        )


class RunConfig(run_config.RunConfig):
    """The settings of an estimator for the IPU."""

    def __init__(
        self,
        ipu_run_config: IPURunConfig | None = None,
        master: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._ipu_run_config = ipu_run_config or IPURunConfig()
        if master is not None:
            self._master = master

    @property
    def ipu_run_config(self) -> IPURunConfig:
        """What concerns the IPU."""
        return self._ipu_run_config

    @property
    def master(self) -> str:
        """The address of the session's server; nothing for one of this process."""
        return self._master


def num_selected(ipu_options: Any, ordinal: int) -> int:
    """The IPUs of a device in a configuration; 0 if only the system can tell."""
    if not isinstance(ipu_options, IPUConfig | IpuOptions):
        raise TypeError(
            f"ipu_options must be an IPUConfig instance, not {type(ipu_options)}."
        )
    is_config = isinstance(ipu_options, IPUConfig)
    options = ipu_options._create_protobuf() if is_config else ipu_options
    devices = options.device_config
    if ordinal >= len(devices):
        raise ValueError(
            f"Only {len(devices)} device(s) are configured, numbered from 0: there is"
            f" none of ordinal {ordinal}."
        )
    return devices[ordinal].auto_count


def check_devices(num_replicas: int, num_shards: int, num_configured: int) -> None:
    """Refuse a number of IPUs that replicas and shards do not fill exactly."""
    num_devices = num_replicas * num_shards
    if num_devices != num_configured:
        raise ValueError(
            f"`IPURunConfig` configured with {num_devices} devices ({num_replicas}"
            f" replicas times {num_shards} shards), but `IpuOptions` configured with"
            f" {num_configured} devices"
        )
