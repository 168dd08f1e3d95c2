"""Sizes: bytes of machine code and of the state of codelets.

PopLiner's profile of BERT-Large inference (facts on memory: graphcore/popliner, Mk2,
halves) lists the vertex code of every op. Divided by the tiles an op uses, which its
control code tells (20 bytes a tile and compute set), it gives the code of the codelets.

The state of a vertex is its fields (graphcore/poplibs lib/popops/codelets, release
3.0): 4 bytes for a pointer, 8 for one with a length. The same profile has 12 bytes for
a sum and for a product by a scalar in place, 16 for a row added in place; that of
EfficientNet has 8 for an activation in place.
"""

from __future__ import annotations

UNARY_CODE_BYTES = 200
"""An activation: 198 bytes on 1460 tiles, in the profile of EfficientNet beside it."""

BINARY_CODE_BYTES = 260
"""A sum of two tensors: 261 bytes on 1456 tiles."""

SCALAR_CODE_BYTES = 288
"""A tensor by a scalar: 287 bytes on 1280 tiles."""

VECTOR_INNER_CODE_BYTES = 162
"""A row added to every row: 162 bytes, on 1280 tiles and on 1456."""

VECTOR_OUTER_CODE_BYTES = 200
"""A number for every row; what is left of a softmax of 1794 bytes, with the next."""

REDUCE_CODE_BYTES = 400
"""One kind of a reduction: four of them, two of five on 512 tiles, in that softmax."""

PRODUCT_CODE_BYTES = 1246
"""Products by AMP units with kernel 1, solved with the next from products of 1794048
and 2372928 bytes; how many tiles each uses is inferred from its vertex state."""

PARTIALS_CODE_BYTES = 404
"""The sum of the partials of a product: see there."""

UNARY_STATE_BYTES = 12
"""Where elements are, where they go, how many; 4 less in place, like those below."""

BINARY_STATE_BYTES = 16
"""Two operands and the result, with its length."""

SCALAR_STATE_BYTES = 16
"""The elements with their length, the scalar, the result."""

VECTOR_STATE_BYTES = 20
"""Elements, row, result, and three counts of 2 bytes (inner) or a length and two."""

REDUCE_STATE_BYTES = 12
"""Partials, result, and two counts, or a pointer to counts and strides."""

IN_PLACE_STATE_BYTES = 4
"""What a vertex in place has less: no pointer to the result."""
