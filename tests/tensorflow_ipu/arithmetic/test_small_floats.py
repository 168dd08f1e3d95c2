"""Numbers of few bits: eight-bit tensors, and formats of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

f8 = ipu.f8_ops


def roundtrip(values: Any, fmt: Any, scale: int = 0) -> Any:
    packed = f8.convert_to_f8(tf.constant(values), f8.create_metadata(fmt, scale))
    return f8.convert_from_f8(packed, tf.float32).numpy()


@pytest.mark.parametrize("fmt", list(f8.Format))
@pytest.mark.parametrize("scale", [-2, 0, 3])
def test_every_byte_is_a_number_of_its_own(fmt: Any, scale: int) -> None:
    metadata = f8.create_metadata(fmt, scale)
    every = f8.QuarterTensor(np.arange(256, dtype=np.uint8), metadata)
    numbers = f8.convert_from_f8(every, tf.float32)
    assert np.isnan(numbers[128])
    assert len(set(numbers.numpy()[~np.isnan(numbers)])) == 255
    again = f8.convert_to_f8(tf.cast(numbers, tf.float16), metadata)
    finite = np.abs(numbers.numpy()) < 60000  # what half precision holds
    assert np.array_equal(again.data.numpy()[finite], np.arange(256)[finite])


def test_ranges_and_rounding() -> None:
    # F143: 3 bits of mantissa, so 1 + 1/16 is a tie and goes to even; at most 240.
    found = roundtrip([1.0625, 1.1, 1000.0, 0.0], f8.Format.F143)
    assert found.tolist() == [1.0, 1.125, 240.0, 0.0]
    # F152: 2 bits of mantissa.
    assert roundtrip([1.1, -1.2], f8.Format.F152).tolist() == [1.0, -1.25]


def test_products_of_eight_bit_matrices() -> None:
    metadata = f8.create_metadata(f8.Format.F143, 1)
    a, b = [[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]]
    product = f8.f8_matmul(
        *(f8.convert_to_f8(tf.constant(x), metadata) for x in (a, b))
    )
    assert product.dtype == tf.float16
    assert product.numpy().tolist() == [[2, 1], [4, 3]]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution_with_one_weight(rank: int) -> None:
    x = tf.ones([1] + [3] * rank + [1])
    k = f8.convert_to_f8(tf.fill([1] * (rank + 2), 2.0), f8.create_metadata(0))
    strides = 1 if rank == 1 else [1] * (rank + 2)
    y = getattr(f8, f"f8_conv_{rank}d")(x, k, strides, "SAME")
    assert y.shape == x.shape
    assert np.all(y == 2)


def test_quarter_tensors_hold_bytes_only() -> None:
    tensor = f8.QuarterTensor(np.array([1, 2], np.uint8), 3)
    assert tensor == f8.QuarterTensor(np.array([1, 2], np.uint8), 3)
    assert (len(tensor), tensor.shape, tensor[1].numpy()) == (2, (2,), 2)
    with pytest.raises(TypeError, match="only uint8"):
        tensor.assign([tf.zeros([2]), 3])


GenericFloat = ipu.popfloat_cast_to_gfloat.GenericFloat


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("RN", [1.0, -1.5]), ("RZ", [1.0, -1.25]), ("RU", [1.25, -1.25])],
)
def test_rounding_modes(mode: str, expected: list[float]) -> None:
    values = tf.constant([1.1, -1.4])  # between 1, 1.25 and 1.25, 1.5
    quarter = GenericFloat(man=2, exp=5)
    packed = quarter.cast_native_to_gfloat(values, round_mode=mode)
    assert packed.dtype == tf.int8
    assert quarter.cast_gfloat_to_native(packed).numpy().tolist() == expected


def test_overflow_is_nan_or_cut() -> None:
    narrow = GenericFloat(man=2, exp=3, bias=3)
    # Codes 1 to 6 are exponents -2 to 3; the largest number is 1.75 * 2^3 = 14.
    cut = narrow.cast_native_to_gfloat([99.0], en_nanoo=False, storage_type="fp32")
    assert cut.numpy().tolist() == [14.0]
    nan = narrow.cast_native_to_gfloat([99.0], storage_type="fp32")
    assert np.isnan(nan[0])
    with pytest.raises(RuntimeWarning, match="not enabled"):
        GenericFloat(man=2, exp=3, en_inf=False).cast_native_to_gfloat([1.0])


def test_denormals_can_be_left_out() -> None:
    tiny = [2.0**-15]  # half the smallest normal number of bias 15
    with_them = GenericFloat(man=2, exp=5)
    without = GenericFloat(man=2, exp=5, en_denorm=False)
    assert with_them.cast_native_to_gfloat(tiny, storage_type="fp32").numpy() == tiny
    assert without.cast_native_to_gfloat(tiny, storage_type="fp32").numpy() == [0]


def test_a_format_described_by_a_tensor() -> None:
    module = ipu.popfloat_cast_to_gfloat
    params = module.calc_gfloat_params(man=2, exp=5)
    packed = module.cast_native_to_gfloat([1.4, -3.0], params, out_type=tf.int8)
    unpacked = module.cast_gfloat_to_native(packed, params)
    assert unpacked.numpy().tolist() == [1.5, -3.0]
