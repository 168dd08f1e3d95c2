"""Variables of a program that is built more than once.

A function makes its variables when it is called. Called again to build the same
program anew it must find those it made, in the order in which it made them; else the
graph would have them twice, under other names and without their values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import variable_scope


class MadeVariables:
    """The variables made in the first of several builds, handed out in the others."""

    def __init__(self) -> None:
        self._made: list[Any] = []
        self._left: list[Any] = []

    @contextlib.contextmanager
    def scope(self, scope: Any) -> Iterator[None]:
        """Build inside; `scope` is the variable scope the program was built in."""
        self._left = list(self._made)
        with (
            variable_scope.variable_scope(
                scope, auxiliary_name_scope=False, custom_getter=self._get
            ),
            tf.variable_creator_scope(self._create),
        ):
            yield

    def _get(self, getter: Callable[..., Any], name: str, *args: Any, **kw: Any) -> Any:
        for variable in self._left:
            # Slots of optimisers are asked for with a slash at the end.
            if variable.op.name == name.rstrip("/"):
                return self._take(variable)
        return getter(name, *args, **kw)

    def _create(self, create: Callable[..., Any], **kwargs: Any) -> Any:
        wanted = kwargs.get("dtype")
        if self._left and (wanted is None or self._left[0].dtype == wanted):
            return self._take(self._left[0])
        variable = create(**kwargs)
        self._made.append(variable)
        return variable

    def _take(self, variable: Any) -> Any:
        self._left = [other for other in self._left if other is not variable]
        return variable
