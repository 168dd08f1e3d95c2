"""The module of PopTorch under which public programs look for ArgsParser."""

from __future__ import annotations

from ._arguments.args import ArgsParser

__all__ = ["ArgsParser"]
