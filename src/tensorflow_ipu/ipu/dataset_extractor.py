"""Data sets and variables to files and back.

In: a data set or variables. Out: operations that write or read one file. The file is
a zip archive of NumPy arrays, which `numpy.load` opens: one array per variable, or one
per component and element of a data set (`<feed>.<component>/<element>`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.framework import constant_op, dtypes, ops
from tensorflow.python.ops import array_ops, script_ops
from tensorflow.python.util import nest

from tensorflow_ipu._former_arguments import IGNORED, with_former

from ._executables import arrays

__all__ = [
    "dataset_extractor",
    "export_variables",
    "get_variable_handles",
    "import_variables",
]


def dataset_extractor(
    dataset: Any,
    num_elements: int,
    filename: str,
    feed_name: str,
    print_stats: bool = True,
) -> Any:
    """An operation that writes the first `num_elements` elements to a file."""
    if num_elements < 1:
        raise ValueError(f"`num_elements` must be at least 1, but is {num_elements}.")
    if not isinstance(dataset, dataset_ops.DatasetV2):
        raise TypeError(f"`dataset` must be a tf.data.Dataset, but is {dataset!r}.")
    writer = arrays.ElementWriter(filename, feed_name, num_elements, print_stats)

    def write(index: Any, *element: Any) -> Any:
        components: Any = nest.flatten(element)
        inputs = [index, *components]
        return array_ops.reshape(
            script_ops.numpy_function(writer.write, inputs, dtypes.int64), []
        )

    start = constant_op.constant(0, dtypes.int64)
    written = dataset.take(num_elements).reduce(start, write)
    return _operation(script_ops.numpy_function(writer.finish, [written], dtypes.int64))


def get_variable_handles(variables: Sequence[Any]) -> list[Any]:
    """The names of the variables' handles, each as a vector of one."""
    return [
        constant_op.constant([variable.handle.op.get_attr("shared_name")])
        if not isinstance(variable.handle, ops.EagerTensor)
        else constant_op.constant([variable._handle_name.rpartition(":")[0]])
        for variable in variables
    ]


@with_former(is_input=IGNORED)
def export_variables(
    variables: Sequence[Any],
    names: Sequence[str | bytes],
    filename: str,
    metadata: str | None = None,
    print_stats: bool = True,
) -> Any:
    """An operation that writes the values of variables, or of tensors, to a file.

    If `metadata` names the description of a compiled program, types and shapes must be
    those of its parameters.
    """
    keys = [arrays.as_text(name) for name in names]
    if metadata:
        arrays.check_described(metadata, [v.shape for v in variables])

    def write(*values: Any) -> Any:
        arrays.write(filename, dict(zip(keys, values, strict=True)), print_stats)
        return np.int64(len(values))

    values = [ops.convert_to_tensor(variable) for variable in variables]
    return _operation(script_ops.numpy_function(write, values, dtypes.int64))


def import_variables(
    variables: Sequence[Any],
    filenames: Sequence[str],
    is_input: bool = True,
    strict: bool = True,
    print_stats: bool = True,
) -> list[Any]:
    """Operations that give variables the values of the same name in the files.

    With `strict` the files must hold those values and no others. `is_input` is there
    for compatibility: a file does not tell inputs from parameters.
    """
    names = [variable.name.rpartition(":")[0] for variable in variables]

    def read() -> list[Any]:
        return arrays.read(filenames, names, strict, print_stats)

    kinds = [variable.dtype.base_dtype for variable in variables]
    # A list of one type yields a tensor, not a list of one.
    values: Any = nest.flatten(script_ops.numpy_function(read, [], kinds))
    pairs = zip(variables, values, strict=True)
    return [v.assign(array_ops.reshape(value, v.shape)) for v, value in pairs]


def _operation(result: Any) -> Any:
    """What to run in a graph; the number of arrays in eager mode, where it has run."""
    return result if isinstance(result, ops.EagerTensor) else result.op
