"""Operators of compiled extension libraries, as plain torch ones while tracing.

torch_scatter, torch_cluster, torch_spline_conv and pyg-lib bring operators that read
real memory and give results of a size only the values decide, so a step that calls
them cannot be traced. While a step is traced, `plain_operators` has them answered by
functions over torch's own operators, one file per kind of operator, whose shapes are
known beforehand.
"""

from popple.capture.torch.foreign.replacing import plain_operators

__all__ = ["plain_operators"]
