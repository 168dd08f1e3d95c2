"""Operators and layers of torch_geometric in forms whose shapes are known beforehand.

While a model is traced they stand in for the originals (`override.py`); they can be
called directly as well. Where the original would give fewer results, as there are no
more neighbours, these have -1 in their place.
"""

from __future__ import annotations

from .aggregation_base import Aggregation
from .cluster_gcn_conv import ClusterGCNConv
from .hetero_linear import HeteroLinear
from .instance_norm import InstanceNorm
from .knn import knn
from .knn_graph import knn_graph
from .knn_interpolate import knn_interpolate
from .mf_conv import MFConv
from .radius import radius, radius_graph

__all__ = [
    "Aggregation",
    "ClusterGCNConv",
    "HeteroLinear",
    "InstanceNorm",
    "MFConv",
    "knn",
    "knn_graph",
    "knn_interpolate",
    "radius",
    "radius_graph",
]
