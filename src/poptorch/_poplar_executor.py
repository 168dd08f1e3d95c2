"""The module of PopTorch under which public programs look for PoplarExecutor."""

from __future__ import annotations

from ._executor import PoplarExecutor

__all__ = ["PoplarExecutor"]
