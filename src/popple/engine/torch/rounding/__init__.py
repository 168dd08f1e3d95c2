"""Rounding of float32 numbers to float16 as the machine does it, in one pass.

at_random   the rounding itself, in torch's operators or by the kernel
kernel      a few lines of C, compiled where there is a compiler
"""

from popple.engine.torch.rounding.at_random import HalfRounding

__all__ = ["HalfRounding"]
