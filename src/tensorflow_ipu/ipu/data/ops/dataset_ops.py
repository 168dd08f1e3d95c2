"""A data set that ends on a full buffer."""

from __future__ import annotations

from typing import Any

from tensorflow.python.data.ops import dataset_ops


class BufferDataset(dataset_ops.UnaryUnchangedStructureDataset):
    """The elements of `input_dataset`, as many as fill whole buffers.

    Elements at the end that do not fill a buffer of `buffer_size` are left out.
    """

    def __init__(self, input_dataset: Any, buffer_size: int) -> None:
        self._input_dataset = input_dataset
        self._buffered = input_dataset.batch(buffer_size, drop_remainder=True).unbatch()
        super().__init__(input_dataset, self._buffered._variant_tensor)
