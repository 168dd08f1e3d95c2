"""Contexts that keep the gradients which pass a marked place.

`grad_util_ops.capture_upstream_gradients` marks the places. What it sees during
differentiation goes to the context in which the place was passed on the way forward.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from tensorflow.python.eager.backprop import GradientTape
from tensorflow.python.ops.unconnected_gradients import UnconnectedGradients

from tensorflow_ipu._types import Tensors


class _Active(threading.local):
    """The contexts entered on this thread, the innermost last."""

    def __init__(self) -> None:
        self.contexts: list[GradientCaptureContext] = []


_ACTIVE = _Active()


def num_gradient_collection_tapes() -> int:
    """How many capturing contexts are entered."""
    return len(_ACTIVE.contexts)


def innermost_context() -> GradientCaptureContext | None:
    """The capturing context entered last, if any."""
    return _ACTIVE.contexts[-1] if _ACTIVE.contexts else None


class GradientCaptureContext:
    """Keeps the gradients captured for what is computed inside it.

    After differentiation `captured_gradients` holds them by the tag of their place.
    """

    def __init__(self) -> None:
        self._captured: dict[str, list[Any]] = {}

    def __enter__(self) -> GradientCaptureContext:
        _ACTIVE.contexts.append(self)
        return self

    def __exit__(
        self,
        typ: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _ACTIVE.contexts.remove(self)

    def capture(self, tag: str, gradients: list[Any]) -> None:
        """Keep the gradients that arrived at the place called `tag`."""
        if tag in self._captured:
            raise ValueError(
                f"Gradients tagged {tag!r} have been captured before; "
                "every place in a context needs a tag of its own."
            )
        self._captured[tag] = gradients

    @property
    def captured_gradients(self) -> dict[str, list[Any]]:
        """The gradients by tag: a list with one for each tensor of the place."""
        return dict(self._captured)

    @captured_gradients.setter
    def captured_gradients(self, _: Any) -> None:
        raise ValueError("captured_gradients is read only.")


class GradientCaptureTape(GradientTape, GradientCaptureContext):
    """A `tf.GradientTape` that also keeps captured gradients."""

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True
    ) -> None:
        GradientTape.__init__(
            self,
            persistent=persistent,
            watch_accessed_variables=watch_accessed_variables,
        )
        GradientCaptureContext.__init__(self)

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
    ) -> Tensors:
        """The gradients of `target`, while those at marked places are captured."""
        self._captured = {}
        return super().gradient(
            target, sources, output_gradients, unconnected_gradients
        )

    def __enter__(self) -> GradientCaptureTape:
        GradientTape.__enter__(self)
        GradientCaptureContext.__enter__(self)
        return self

    def __exit__(
        self,
        typ: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        GradientCaptureContext.__exit__(self, typ, value, traceback)
        GradientTape.__exit__(self, typ, value, traceback)
