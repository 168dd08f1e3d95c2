"""Raw operators that hand a tensor from a compiled program to the host.

Both ends must be built in the same graph, the sending one first: what is received is
then the tensor that was sent.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import ops

Tensor = Any

_SENT = "ipu_sent_to_host"


def ipu_send_to_host(
    tensor: Tensor,
    tensor_name: str,
    send_device: str,
    send_device_incarnation: int,
    recv_device: str,
    name: str | None = None,
) -> Any:
    """Send a tensor under a name."""
    sent = tf.identity(tensor, name=name)
    ops.add_to_collection(_SENT, (send_device, tensor_name, sent))
    return sent.op


def ipu_recv_at_host(
    T: Any,
    tensor_name: str,
    send_device: str,
    send_device_incarnation: int,
    recv_device: str,
    device_ordinal: int = 0,
    name: str | None = None,
) -> Tensor:
    """The tensor that was sent under a name."""
    found = [
        sent
        for device, other_name, sent in ops.get_collection(_SENT)
        if (device, other_name) == (send_device, tensor_name)
    ]
    if not found:
        raise ValueError(
            f"Nothing called {tensor_name!r} is sent from {send_device} in this graph. "
            "Build ipu_send_to_host first, in the same graph and outside loops."
        )
    return tf.identity(tf.ensure_shape(found[-1], found[-1].shape), name=name)
