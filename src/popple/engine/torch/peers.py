"""The other processes of a job: tensors are added, gathered and sent over all of them.

On a CPU, and where instances share a GPU, tensors travel by gloo through the host's
memory; with a GPU of its own for every instance they travel by NCCL. Sums through the
host are added in an order that depends on the numbers of instances alone, so that every
instance gets the same bits, and the same as in the next run.
"""

from __future__ import annotations

import atexit
import base64
import functools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from popple.distributed.meeting import SECONDS_TO_MEET, Meeting, find_meeting
from popple.distributed.store import StoreClient
from popple.errors import UsageError

_TIMEOUT = timedelta(seconds=SECONDS_TO_MEET)
# Buffers that are kept for the next call: gradients of one or two types.
_NUM_KEPT = 3
# What gloo can add; others travel as these.
_WIDER = {torch.bool: torch.uint8, torch.bfloat16: torch.float32}


class _LauncherStore(dist.Store):
    """The launcher's store as torch uses stores: for the addresses of processes."""

    def __init__(self, client: StoreClient, prefix: str) -> None:
        super().__init__()
        self._client = client
        self._prefix = prefix

    def set(self, key: str, value: str | bytes) -> None:
        data = value.encode() if isinstance(value, str) else value
        self._client.put(self._prefix + key, base64.b64encode(data).decode())

    def get(self, key: str) -> bytes:
        return base64.b64decode(self._client.get(self._prefix + key, SECONDS_TO_MEET))

    def add(self, key: str, value: int) -> int:
        counts = [self._client.add(self._prefix + key) for _ in range(value)]
        return counts[-1]

    def wait(self, keys: Sequence[str], timeout: timedelta = _TIMEOUT) -> None:
        for key in keys:
            self._client.get(self._prefix + key, timeout.total_seconds())


class Peers:
    """All processes of a job, of which this one is number `index`.

    Every process must make the same calls in the same order.
    """

    def __init__(self, group: Any, index: int, count: int, device: str) -> None:
        self.index = index
        self.count = count
        self._group: Any = group
        self._device = device
        self._flat: dict[tuple[torch.dtype, int], Tensor] = {}

    @property
    def backend(self) -> str:
        """What carries the tensors: gloo or nccl."""
        return "nccl" if self._device == "cuda" else "gloo"

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite tensors with their sums over all processes."""
        for tensor, total in zip(tensors, self.sums_of(tensors), strict=True):
            tensor.copy_(total)

    def sums_of(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Sums over all processes; good until the next call."""
        if self.count == 1:
            return list(tensors)
        by_type: dict[torch.dtype, list[int]] = {}
        for position, tensor in enumerate(tensors):
            by_type.setdefault(tensor.dtype, []).append(position)
        totals: dict[int, Tensor] = {}
        for dtype, positions in by_type.items():
            members = [tensors[position] for position in positions]
            # One message for all of a type: hundreds of small ones would cost more
            # than the data.
            flat = self._buffer(_WIDER.get(dtype, dtype), members)
            views = _views(flat, members)
            torch._foreach_copy_(views, members)
            self._sum(flat)
            device = members[0].device
            totals.update(zip(positions, _on_device(views, device), strict=True))
        return [totals[position] for position in range(len(tensors))]

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, which may differ in their first dimension."""
        if self.count == 1:
            return [tensor.clone()]
        sizes = self._gather_equal(torch.tensor([tensor.shape[0]]))
        longest = max(int(size) for size in sizes)
        padded = tensor.new_zeros((longest, *tensor.shape[1:]))
        padded[: tensor.shape[0]] = tensor
        parts = self._gather_equal(padded)
        return [part[: int(size)] for part, size in zip(parts, sizes, strict=True)]

    def send_all(self, tensors: Sequence[Tensor], root: int = 0) -> None:
        """Overwrite tensors with those of process `root`."""
        if self.count == 1:
            return
        options = dist.BroadcastOptions()
        options.rootRank = root
        for tensor in tensors:
            moved = self._to_message(tensor)
            self._group.broadcast([moved], options).wait()
            tensor.copy_(moved.view(tensor.shape))

    def check_equal(self, weights: Sequence[Tensor]) -> bool:
        """Whether all processes have the same weights; UsageError for other models."""
        count = sum(tensor.numel() for tensor in weights)
        norms = torch._foreach_norm(list(weights)) if weights else []
        digest = [float(count), *(float(norm) for norm in norms)]
        found = self.gather(torch.tensor([[len(digest), count]]))
        if any(not torch.equal(each, found[0]) for each in found):
            sizes = ", ".join(str(int(each[0, 1])) for each in found)
            raise UsageError(
                f"The instances train different models: they have {sizes} weights.",
                remedy="All instances must run the same program.",
            )
        digests = self.gather(torch.tensor([digest], dtype=torch.float64))
        return all(torch.equal(each, digests[0]) for each in digests)

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.count > 1:
            self.add_up([torch.zeros(1)])

    def close(self) -> None:
        """Let go of the connection; joins its threads."""
        self._group = None

    # -- messages

    def _buffer(self, dtype: torch.dtype, members: Sequence[Tensor]) -> Tensor:
        """Memory for all members; kept, since the next update needs the same."""
        size = sum(tensor.numel() for tensor in members)
        # Parts of equal size, one for each process to add.
        size += -size % self.count
        key = (dtype, size)
        if key not in self._flat:
            while len(self._flat) >= _NUM_KEPT:
                del self._flat[next(iter(self._flat))]
            self._flat[key] = torch.zeros(size, dtype=dtype, device=self._device)
        return self._flat[key]

    def _sum(self, flat: Tensor) -> None:
        # A sum of two is the same in any order.
        if self.count == 2 or self._device == "cuda":
            self._group.allreduce([flat]).wait()
            return
        # Each process adds one part and tells the others.
        received = torch.empty_like(flat)
        self._group.alltoall_base(received, flat, [], []).wait()
        parts = list(received.view(self.count, -1))
        while len(parts) > 1:
            # Neighbours first, as an engine adds its replicas: `add_in_pairs`.
            for left, right in zip(parts[::2], parts[1::2], strict=False):
                left += right
            parts = parts[::2]
        self._group._allgather_base(flat, parts[0]).wait()

    def _gather_equal(self, tensor: Tensor) -> list[Tensor]:
        message = self._to_message(tensor)
        results = [torch.empty_like(message) for _ in range(self.count)]
        self._group.allgather([results], [message]).wait()
        return [
            result.to(tensor.device, tensor.dtype).view(tensor.shape)
            for result in results
        ]

    def _to_message(self, tensor: Tensor) -> Tensor:
        """A copy that the network can carry."""
        dtype = _WIDER.get(tensor.dtype, tensor.dtype)
        return tensor.detach().to(self._device, dtype, copy=True).reshape(-1)


def _views(flat: Tensor, members: Sequence[Tensor]) -> list[Tensor]:
    """Parts of the buffer in the shapes of its members."""
    sizes = [tensor.numel() for tensor in members]
    rest = flat.numel() - sum(sizes)
    parts = flat.split([*sizes, rest])[: len(sizes)]
    return [part.view(m.shape) for part, m in zip(parts, members, strict=True)]


def _on_device(views: list[Tensor], device: torch.device) -> list[Tensor]:
    """The views, or copies where they are needed; one transfer for all of them."""
    if views[0].device == device:
        return views
    base = views[0]._base
    assert base is not None
    return _views(base.to(device), views)


@functools.cache
def connect_peers(index: int, count: int, device: str = "cpu") -> Peers:
    """The processes of this job, connected once; steps run on `device`."""
    if count == 1 and device == "cpu":
        return Peers(None, 0, 1, "cpu")
    meeting = find_meeting(index, count)
    carrier = _carrier(meeting, device)
    prefix = f"torch/{carrier}/{count}/"
    make: Callable[..., Any] = _nccl if carrier == "cuda" else _gloo
    try:
        group = make(prefix, meeting)
    except RuntimeError as error:
        raise UsageError(
            f"Process {index} cannot be connected to the others: {error}"
        ) from error
    peers = Peers(group, index, count, carrier)
    # A thread of the connection may still hold the tensors of the last message. Were
    # it alive while the interpreter ends, releasing them would abort the process.
    del group
    atexit.register(peers.close)
    return peers


def _carrier(meeting: Meeting, device: str) -> str:
    """The device whose memory tensors travel from.

    NCCL takes one process per GPU: instances that share one go through the host.
    """
    if device != "cuda" or meeting.instance.local_count > torch.cuda.device_count():
        return "cpu"
    return "cuda"


def _torch_store(meeting: Meeting, prefix: str) -> dist.Store:
    if meeting.store is not None:
        return _LauncherStore(meeting.store, prefix)
    is_first = meeting.index == 0
    try:
        store = dist.TCPStore(
            meeting.host, meeting.port, meeting.count, is_first, _TIMEOUT
        )
    except RuntimeError as error:
        raise UsageError(
            f"Nobody can be met at {meeting.host}:{meeting.port}: {error}",
            remedy="Check MASTER_ADDR and MASTER_PORT.",
        ) from error
    return dist.PrefixStore(prefix, store)


def _gloo(prefix: str, meeting: Meeting) -> Any:
    store = _torch_store(meeting, prefix)
    # Its options have no public name yet, but they are the way to say an address.
    gloo: Any = dist.ProcessGroupGloo
    options = gloo._Options()
    options._timeout = _TIMEOUT
    # The address that others reach this process at. The host's name, which gloo would
    # look up, need not resolve.
    host = meeting.store.own_host if meeting.store is not None else meeting.host
    if meeting.store is not None or meeting.index == 0:
        options._devices = [gloo.create_device(hostname=host)]
    else:
        options._devices = [gloo.create_default_device()]
    return gloo(store, meeting.index, meeting.count, options)


def _nccl(prefix: str, meeting: Meeting) -> Any:
    client = meeting.store
    if client is None:
        store = _torch_store(meeting, prefix)
    else:
        store = _served_store(client, meeting, prefix)
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = _TIMEOUT
    return dist.ProcessGroupNCCL(store, meeting.index, meeting.count, options)


def _served_store(client: StoreClient, meeting: Meeting, prefix: str) -> dist.Store:
    """A store of torch's own: NCCL asks more of one than the launcher's can do.

    Process 0 serves it and tells the others by the launcher's store where it is.
    """
    key = f"{prefix}address"
    if meeting.index == 0:
        host = client.own_host
        store = dist.TCPStore(
            host, 0, meeting.count, True, _TIMEOUT, wait_for_workers=False
        )
        client.put(key, f"{host}:{store.port}")
        return store
    host, _, port = client.get(key, SECONDS_TO_MEET).rpartition(":")
    return dist.TCPStore(host, int(port), meeting.count, False, _TIMEOUT)
