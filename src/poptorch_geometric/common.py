"""The two kinds of batch that torch_geometric makes, as types."""

from __future__ import annotations

from torch_geometric.data import Batch, Data, HeteroData

__all__ = ["DataBatch", "HeteroDataBatch"]

# torch_geometric makes these classes when the first batch of the kind is made.
DataBatch = type(Batch(_base_cls=Data))
HeteroDataBatch = type(Batch(_base_cls=HeteroData))
