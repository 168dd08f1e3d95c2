"""Graph neural networks of torch_geometric as poptorch models.

Models are compiled for one size of their inputs, so batches of graphs must all have
the same: loaders here pad or trim them. Importing the package also lets models take
and return graphs, and has operators of torch_geometric, and of the libraries it builds
on, whose results have no fixed size traced in a form that does, and restores what
torch_geometric once had and dropped. poptorch imports it by itself when a program that
uses one of these libraries passes a graph to a model or compiles one.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from poptorch import __version__

from . import _foreign

# First, and by itself: a program may use torch_scatter without torch_geometric.
_foreign.register()

if TYPE_CHECKING or find_spec("torch_geometric") is not None:
    from ._restored import restore as _restore
    from .collate import make_exclude_keys
    from .dataloader import FixedSizeDataLoader, FixedSizeStrategy, OverSizeStrategy
    from .fixed_size_options import FixedSizeOptions
    from .override import register_overrides as _register_overrides
    from .types import PyGArgsParser
    from .utils import TrainingStepper, set_aggregation_dim_size

    _register_overrides()
    _restore()
else:

    def __getattr__(name: str) -> None:
        """Say what is missing: all that the package offers is for torch_geometric."""
        if name in __all__:
            raise ModuleNotFoundError("No module named 'torch_geometric'")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "FixedSizeDataLoader",
    "FixedSizeOptions",
    "FixedSizeStrategy",
    "OverSizeStrategy",
    "PyGArgsParser",
    "TrainingStepper",
    "__version__",
    "make_exclude_keys",
    "set_aggregation_dim_size",
]
