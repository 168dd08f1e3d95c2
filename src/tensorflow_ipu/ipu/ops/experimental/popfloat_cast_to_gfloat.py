"""Floating point formats of one's own: rounding to them, packing and unpacking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf

from ..._arithmetic.small_floats import Layout, decode, encode, quantize
from .._tensors import Dtype, Tensor

__all__ = ["GenericFloat"]

# Length of the vector that describes a format; the first five numbers say it all.
_PARAM_SIZE = 29
_FLOATS = {"fp32": tf.float32, "fp16": tf.float16}


class GenericFloat:
    """A format of `man` mantissa and `exp` exponent bits, and casts to and from it.

    `cast_native_to_gfloat` rounds a tensor to the format. Formats of less than eight
    or sixteen bits are stored packed, as int8 or int16, and come back as floats
    through `cast_gfloat_to_native`; others stay floats.
    """

    def __init__(
        self,
        man: int = 10,
        exp: int = 5,
        bias: int = 15,
        en_denorm: bool = True,
        en_inf: bool = True,
        calc_type: str = "auto",
        name: str | None = None,
    ) -> None:
        self._layout = Layout(man, exp, bias, en_denorm, en_inf and exp > 0)
        self._calc_type = calc_type
        self._name = name
        self.set_param()

    def set_param(self) -> None:
        """Derive the types for storage and calculation from the format."""
        man, exp = self._layout.mantissa, self._layout.exponent
        wide = exp > 5 or man > 10 or (exp == 5 and man == 10)
        if wide and self._calc_type == "fp16":
            raise RuntimeError("float16 has too few bits for this Gfloat format")
        usual = "fp32" if wide else "fp16"
        calc_type = usual if self._calc_type == "auto" else self._calc_type
        if calc_type not in _FLOATS:
            raise RuntimeError(f"Gfloat calculation type not supported: {calc_type}")
        self._calc_dtype = _FLOATS[calc_type]
        self._native_dtype = _FLOATS[usual]
        self._storage_dtype = self._storage(wide)

    def _storage(self, wide: bool) -> Dtype:
        bits = self._layout.mantissa + self._layout.exponent
        if (self._layout.exponent, self._layout.mantissa) == (5, 10):
            return tf.float16
        if bits < 8:
            return tf.int8
        if wide:
            return tf.int16 if bits < 16 else tf.float32
        return tf.float16

    def reset(self) -> None:
        """Derive the types again."""
        self.set_param()

    def calc_quantized_fp16_params(self) -> None:
        """The description of the format is the same for both calculation types."""

    def calc_quantized_fp32_params(self) -> None:
        """The description of the format is the same for both calculation types."""

    def get_gfloat_storage_dtype(self) -> Dtype:
        """The type in which numbers of the format are kept."""
        return self._storage_dtype

    def get_gfloat_calc_dtype(self) -> Dtype:
        """The type in which the device would compute the cast."""
        return self._calc_dtype

    def get_gfloat_native_dtype(self) -> Dtype:
        """The type to which packed numbers are unpacked."""
        return self._native_dtype

    def cast_native_to_gfloat(
        self,
        inputs: Tensor,
        en_nanoo: bool = True,
        round_mode: str = "RN",
        sr_density: str = "Invalid",
        sr_bits: int = 23,
        sr_norm_offset: float = 0.0,
        sr_norm_scale: float = 1.0,
        sr_norm_min: float = -0.5,
        sr_norm_max: float = 0.5,
        sr_prob: float = 1.0,
        storage_type: str = "auto",
    ) -> Tensor:
        """`inputs` rounded to the format.

        `en_nanoo` makes NaN of what is too large, and needs a format with infinities.
        Stochastic rounding (`SR`, `SX`) draws uniform noise.
        """
        if en_nanoo and not self._layout.infinities:
            raise RuntimeWarning(
                "Gfloat format's Infs and Nans are not enabled, so numbers that are "
                "too large cannot become NaN. Pass en_nanoo=False to cut them."
            )
        out_type = self._out_type(storage_type, self._storage_dtype)
        return _cast(inputs, self._layout, en_nanoo, round_mode, out_type)

    def cast_gfloat_to_native(
        self, inputs: Tensor, storage_type: str = "auto"
    ) -> Tensor:
        """Packed numbers of the format as floats; floats stay as they are."""
        if not self.is_packed_float():
            return inputs
        out_type = self._out_type(storage_type, self._native_dtype)
        return _unpack(inputs, self._layout, out_type)

    def _out_type(self, storage_type: str, usual: Dtype) -> Dtype:
        if storage_type == "auto":
            return usual
        if storage_type not in _FLOATS:
            raise RuntimeError(f"Gfloat storage format not supported: {storage_type}")
        return _FLOATS[storage_type]

    def get_cast_native_to_gfloat_fun(
        self,
        en_nanoo: bool = True,
        round_mode: str = "RN",
        sr_bits: int = 23,
        sr_density: str = "Invalid",
        sr_norm_offset: float = 0.0,
        sr_norm_scale: float = 1.0,
        sr_norm_min: float = -0.5,
        sr_norm_max: float = 0.5,
        sr_prob: float = 1.0,
        storage_type: str = "auto",
    ) -> Callable[[Tensor], Tensor]:
        """A function that casts to the format with these settings."""
        return lambda x: self.cast_native_to_gfloat(
            x, en_nanoo=en_nanoo, round_mode=round_mode, storage_type=storage_type
        )

    def get_cast_gfloat_to_native_fun(
        self, storage_type: str = "auto"
    ) -> Callable[[Tensor], Tensor]:
        """A function that casts from the format."""
        return lambda x: self.cast_gfloat_to_native(x, storage_type=storage_type)

    def get_cast_to_gfloat_params(self) -> Any:
        """The description of the format, for the functions of this module."""
        return _describe(self._layout)

    def get_gfloat_cast_param_size(self) -> int:
        """The length of that description."""
        return _PARAM_SIZE

    def get_gfloat_packed_params(self) -> int:
        """The description in one integer."""
        layout = self._layout
        flags = int(layout.denormals) | int(layout.infinities) << 1
        return (
            layout.mantissa
            | layout.exponent << 8
            | (layout.bias & 255) << 16
            | flags << 24
        )

    def get_mantissa_size(self) -> int:
        """Bits of the mantissa."""
        return self._layout.mantissa

    def get_exponent_size(self) -> int:
        """Bits of the exponent."""
        return self._layout.exponent

    def get_exponent_bias(self) -> int:
        """What is added to the exponent to make its code."""
        return self._layout.bias

    def get_en_denorms(self) -> bool:
        """Whether there are numbers below the smallest normal one."""
        return self._layout.denormals

    def get_en_inf(self) -> bool:
        """Whether one exponent code is kept for infinities and NaN."""
        return self._layout.infinities

    def is_packed_float(self) -> bool:
        """Whether numbers are stored as integers."""
        return self._storage_dtype.is_integer

    @staticmethod
    def get_gfloat_param_size(calc_type: Dtype) -> int:
        """The length of a format's description."""
        if calc_type not in _FLOATS.values():
            raise RuntimeError(
                f"Gfloat format calculation type not supported: {calc_type}"
            )
        return _PARAM_SIZE


def cast_native_to_gfloat(
    inputs: Tensor,
    params: Any,
    en_nanoo: bool = True,
    round_mode: str = "RN",
    sr_bits: int = 23,
    sr_density: str = "Invalid",
    sr_norm_offset: float = 0.0,
    sr_norm_scale: float = 1.0,
    sr_norm_min: float = -0.5,
    sr_norm_max: float = 0.5,
    sr_prob: float = 1.0,
    gfloat_format: str = "Invalid",
    calc_type: Dtype = tf.float32,
    out_type: Dtype = tf.float32,
) -> Tensor:
    """`inputs` rounded to the format that `params` describes."""
    return _cast(inputs, _described(params), en_nanoo, round_mode, out_type)


def cast_gfloat_to_native(
    inputs: Tensor,
    params: Any,
    gfloat_format: str = "Invalid",
    calc_type: Dtype = tf.float32,
    out_type: Dtype = tf.float32,
) -> Tensor:
    """Packed numbers of the format that `params` describes, as floats."""
    return _unpack(inputs, _described(params), out_type)


def calc_gfloat_params(
    man: int = 10,
    exp: int = 5,
    bias: int = 15,
    en_denorm: bool = True,
    en_inf: bool = True,
    calc_type: Dtype = tf.float32,
) -> Tensor:
    """The description of a format, for the functions of this module."""
    return tf.constant(_describe(Layout(man, exp, bias, en_denorm, en_inf)))


def _describe(layout: Layout) -> Any:
    params = np.zeros([_PARAM_SIZE], np.int32)
    params[:3] = layout.mantissa, layout.exponent, layout.bias
    params[3:5] = layout.denormals, layout.infinities
    return params


def _described(params: Any) -> Layout:
    man, exp, bias, denorm, inf = tf.unstack(tf.convert_to_tensor(params)[:5])
    return Layout(man, exp, bias, denorm > 0, inf > 0)


def _cast(
    inputs: Tensor, layout: Layout, en_nanoo: bool, round_mode: str, out_type: Dtype
) -> Tensor:
    rounded = quantize(inputs, layout, round_mode, nan_on_overflow=en_nanoo)
    out_type = tf.as_dtype(out_type)
    if not out_type.is_integer:
        return tf.cast(rounded, out_type)
    bits = layout.mantissa + layout.exponent
    sign = tf.bitwise.left_shift(1, tf.cast(out_type.size * 8 - 1, tf.int32))
    nan = tf.bitwise.left_shift(1, tf.cast(bits, tf.int32)) - 1
    magnitude = tf.where(tf.math.is_nan(rounded), nan, encode(rounded, layout))
    signed = tf.where(rounded < 0, magnitude - sign, magnitude)
    return tf.cast(signed, out_type)


def _unpack(inputs: Tensor, layout: Layout, out_type: Dtype) -> Tensor:
    bits = layout.mantissa + layout.exponent
    ones = tf.bitwise.left_shift(1, tf.cast(bits, tf.int32)) - 1
    packed = tf.cast(inputs, tf.int32)
    code = tf.bitwise.bitwise_and(packed, ones)
    magnitude = decode(code, layout)
    is_nan = tf.logical_and(tf.equal(code, ones), layout.infinities)
    magnitude = tf.where(is_nan, tf.constant(float("nan")), magnitude)
    return tf.cast(tf.where(packed < 0, -magnitude, magnitude), out_type)
