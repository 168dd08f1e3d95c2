"""Discovery modes: which partitions an inventory looks at."""

import enum


class DeviceDiscoveryMode(enum.Enum):
    """The active partition, or all of them; a process uses one of the two."""

    DiscoverActivePartitionIPUs = 0
    DiscoverAllPartitionIPUs = 1


DiscoverActivePartitionIPUs = DeviceDiscoveryMode.DiscoverActivePartitionIPUs
DiscoverAllPartitionIPUs = DeviceDiscoveryMode.DiscoverAllPartitionIPUs


class _ModeOfProcess:
    """The mode that the first inventory of this process chose."""

    def __init__(self) -> None:
        self._chosen: DeviceDiscoveryMode | None = None

    def choose(self, mode: DeviceDiscoveryMode) -> None:
        """Keep to one mode, as the documentation of the library demands."""
        if self._chosen not in (None, mode):
            raise RuntimeError(
                f"gcipuinfo was used with {self._chosen.name} in this process, and now "
                f"with {mode.name}: both in one process are not possible. Use one mode."
            )
        self._chosen = mode


MODE_OF_PROCESS = _ModeOfProcess()
