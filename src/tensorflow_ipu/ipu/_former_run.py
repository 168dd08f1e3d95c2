"""The name that strategies had for `run` until TensorFlow 2.1, and in 1.15."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_ipu._types import Returned

__all__ = ["FormerRun"]


class FormerRun:
    """A strategy of TensorFlow that programs of that time can run."""

    def experimental_run_v2(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Returned:
        """The same as `run`."""
        strategy: Any = self
        return strategy.run(fn, args, kwargs)
