"""Sessions for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.client import session as session_lib

from ..utils import move_variable_initialization_to_cpu

__all__ = ["ipu_session", "move_variable_initialization_to_cpu"]


@contextmanager
def ipu_session(
    disable_grappler_optimizers: Sequence[str] | None = None,
) -> Iterator[Any]:
    """A session in which these optimisers of the graph are turned off."""
    config = config_pb2.ConfigProto()
    for name in disable_grappler_optimizers or ():
        optimizers = config.graph_options.rewrite_options
        setattr(optimizers, name, rewriter_config_pb2.RewriterConfig.OFF)
    with session_lib.Session(config=config) as session:
        yield session
