"""Round float32 numbers to float16 at random, in proportion to the distance.

A float32 has thirteen more bits of fraction than a float16. Random bits are added to
them and what they carry into stays: a number is rounded away from zero as often as it
is near to that side. Below the smallest normal float16 its steps are equally wide and
the bits do not line up with them; such numbers are shifted to 2**-14, where they do.

Random bits are a hash of a counter, so that they can be computed anywhere and in any
order: with a compiler and without one, results are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import torch
from torch import Tensor

from popple.engine.torch.rounding.kernel import find_kernel

_WIDTH = 32  # random words of a block, each for two numbers: see rounding.c
_SHARED_SIZE = 1 << 15
"""Numbers from which on threads share the work."""

_INFINITY, _NAN, _LARGEST = 0x7C00, 0x7E00, 0x7BFF
_SMALLEST_NORMAL = 0x38800000  # 2**-14 as a float32
_BASE = 0x38000000  # what float32 and float16 count exponents from, apart
_NO_SIGN = 0x7FFFFFFF
_INFINITE = 0x7F800000


@dataclass
class HalfRounding:
    """Rounds at random; what is too large becomes infinite, or NaN if so asked."""

    seed: int
    gives_nan: bool = False
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def __call__(self, x: Tensor) -> Tensor:
        """float32 numbers as float16, laid out as they are."""
        out = torch.empty_like(x, dtype=torch.float16)
        if x.stride() != out.stride():  # there were gaps in memory
            x = torch.empty_like(out, dtype=torch.float32).copy_(x)
        key, counter = divmod(self._random.getrandbits(64), 1 << 32)
        kernel = find_kernel() if x.is_cpu else None
        if kernel is None:
            rounded = _rounded(_in_order(x), counter, key, self.gives_nan)
            _in_order(out).copy_(rounded.view(torch.float16))
            return out
        count = x.numel()
        num_threads = 1 if count < _SHARED_SIZE else torch.get_num_threads()
        addresses = x.data_ptr(), out.data_ptr()
        kernel(*addresses, count, counter, key, self.gives_nan, num_threads)
        return out


def _in_order(x: Tensor) -> Tensor:
    """The numbers of a tensor without gaps, as they lie in memory."""
    return x.as_strided((x.numel(),), (1,))


def _rounded(x: Tensor, counter: int, key: int, gives_nan: bool) -> Tensor:
    """The bits of float16 numbers; the same as the kernel computes."""
    bits = x.view(torch.int32)
    size = bits & _NO_SIGN
    is_tiny = (size < _SMALLEST_NORMAL).to(torch.int32)
    shift = is_tiny * _SMALLEST_NORMAL
    shifted = (size.view(torch.float32) + shift.view(torch.float32)).view(torch.int32)
    base = _BASE + is_tiny * (_SMALLEST_NORMAL - _BASE)
    code = (shifted - base + _noise(x, counter, key)) >> 13
    code.masked_fill_(code > _LARGEST, _NAN if gives_nan else _INFINITY)
    code.masked_fill_(size == _INFINITE, _INFINITY)
    code.masked_fill_(size > _INFINITE, _NAN)
    return (code | (bits >> 16 & 0x8000)).to(torch.int16)


def _noise(x: Tensor, counter: int, key: int) -> Tensor:
    """Thirteen random bits for every number."""
    count = x.numel()
    num_blocks = -(-count // (2 * _WIDTH))
    # 32 bits of unsigned arithmetic in tensors of 64 bits.
    word = torch.arange(num_blocks * _WIDTH, device=x.device).add_(counter)
    word &= 0xFFFFFFFF
    word ^= word >> 16
    word = (word * 0x7FEB352D) & 0xFFFFFFFF ^ key
    word ^= word >> 15
    word = (word * 0x846CA68B) & 0xFFFFFFFF
    word ^= word >> 16
    words = word.view(num_blocks, _WIDTH)
    both = torch.stack([words & 0x1FFF, words >> 19], 1)
    return both.view(-1)[:count].to(torch.int32)
