"""One call for every entry of the aten table.

An example is the operator's arguments, keywords in a dictionary at the end; tensors
among them become inputs of the traced function, at any depth, and so can be told from
constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

X = torch.rand(4, 6) + 0.5
Y = torch.rand(4, 6) + 0.5
N = torch.randint(0, 4, (4, 6))
MASK = X > 1
MATRIX = torch.rand(6, 4)
BATCH = torch.rand(2, 3, 4)
IMAGE = torch.rand(2, 4, 8, 8)
VOLUME = torch.rand(1, 2, 4, 4, 4)
ROW = torch.tensor([0, 2, 1])
CLASSES = torch.tensor([0, 1, 2, 3])

Arguments = tuple[Any, ...]


def _each(names: str, *arguments: Any) -> dict[str, Arguments]:
    return {name: arguments for name in names.split()}


def _conv(transposed: bool, kernel: torch.Tensor) -> Arguments:
    return (IMAGE, kernel, torch.rand(4), [1, 1], [1, 1], [1, 1], transposed, [0, 0], 1)


def _results(name: str, *arguments: Any) -> tuple[torch.Tensor, ...]:
    """What an operator gives, to be handed to its gradient."""
    return getattr(torch.ops.aten, name)(*arguments)


def _max_pool(rank: int, source: torch.Tensor) -> dict[str, Arguments]:
    name = f"max_pool{rank}d_with_indices"
    window = [2] * rank
    pooled, indices = _results(name, source, window, window)
    place = ([0] * rank, [1] * rank, False)
    backward = (torch.rand_like(pooled), source, window, window, *place, indices)
    return {name: (source, window, window), f"{name}_backward": backward}


def _attention() -> dict[str, Arguments]:
    q = torch.rand(2, 2, 3, 4)
    # What GPUs give cannot be computed everywhere; forms are all that a trace needs.
    sums, seed = torch.zeros(2, 2, 3), torch.zeros((), dtype=torch.int64)
    given, seeds, lengths = (q, q, q, q), (seed, seed), (seed, seed, 3, 3)
    name = "_scaled_dot_product_{}_attention{}".format
    return {
        name("flash", "_for_cpu"): (q, q, q),
        name("flash", "_for_cpu_backward"): (*given, q, sums, 0.0, False),
        name("flash", ""): (q, q, q, 0.1),
        name("flash", "_backward"): (*given, q, sums, *lengths, 0.1, False, *seeds),
        name("efficient", ""): (q, q, q, None, True),
        name("efficient", "_backward"): (
            *(*given, torch.zeros(2, 2, 3, 3), q, sums, *seeds),
            *(0.1, [True] * 4),
        ),
        name("cudnn", ""): (q, q, q, None, True),
        name("cudnn", "_backward"): (
            *(*given, q, sums, *seeds, torch.zeros(2, 2, 3, 3)),
            *(*lengths, 0.1, False),
        ),
    }


def _norms() -> dict[str, Arguments]:
    scale = torch.ones(4)
    running = (torch.zeros(4), torch.ones(4))
    batch = (IMAGE, scale, scale, *running)
    out, mean, rstd = _results("native_batch_norm", *batch, True, 0.1, 1e-5)
    layer = ([6], torch.ones(6), torch.ones(6))
    layer_out, layer_mean, layer_rstd = _results("native_layer_norm", X, *layer, 1e-5)
    sizes = (2, 4, 64, 2)
    group_out, group_mean, group_rstd = _results(
        "native_group_norm", IMAGE, scale, scale, *sizes, 1e-5
    )
    wanted = [True, True, True]
    reserve = torch.zeros(0, dtype=torch.uint8)
    statistics = (*running, mean, rstd, True, 1e-5, wanted)
    return {
        **_each("native_batch_norm _native_batch_norm_legit", *batch, True, 0.1, 1e-5),
        "_native_batch_norm_legit_functional": (*batch, True, 0.1, 1e-5),
        "_native_batch_norm_legit_no_training": (*batch, 0.1, 1e-5),
        "_batch_norm_with_update": (*batch, 0.1, 1e-5),
        "native_batch_norm_backward": (out, IMAGE, scale, *statistics),
        "batch_norm_backward": (
            *(out, IMAGE, scale, *running, mean, rstd),
            *(True, 1e-5, wanted, reserve),
        ),
        "native_layer_norm": (X, *layer, 1e-5),
        "native_layer_norm_backward": (
            *(layer_out, X, [6], layer_mean, layer_rstd, *layer[1:]),
            wanted,
        ),
        "native_group_norm": (IMAGE, scale, scale, *sizes, 1e-5),
        "native_group_norm_backward": (
            *(group_out, IMAGE, group_mean, group_rstd, scale, *sizes),
            wanted,
        ),
    }


def _losses() -> dict[str, Arguments]:
    logs = X.log_softmax(1)
    image = torch.rand(2, 4, 3, 3)
    places = torch.randint(0, 4, (2, 3, 3))
    one, mean = torch.ones(()), 1
    multilabel = (X, torch.full((4, 6), -1))
    _, is_target = _results("multilabel_margin_loss_forward", *multilabel, mean)
    nll = (logs, CLASSES, None, mean, -100)
    return {
        "nll_loss_forward": nll,
        "nll_loss_backward": (one, *nll, one),
        "nll_loss2d_forward": (image, places, None, mean, -100),
        "nll_loss2d_backward": (one, image, places, None, mean, -100, one),
        "mse_loss": (X, Y),
        "mse_loss_backward": (one, X, Y, mean),
        **_each("smooth_l1_loss huber_loss", X, Y, mean, 1.0),
        **_each("smooth_l1_loss_backward huber_loss_backward", one, X, Y, mean, 1.0),
        "binary_cross_entropy": (X / 2, Y / 2),
        "binary_cross_entropy_backward": (one, X / 2, Y / 2),
        "binary_cross_entropy_with_logits": (X, Y),
        "soft_margin_loss": (X, Y),
        "soft_margin_loss_backward": (one, X, Y, mean),
        "multi_margin_loss": (X, CLASSES),
        "multi_margin_loss_backward": (one, X, CLASSES, 1, 1.0),
        "multilabel_margin_loss_forward": (*multilabel, mean),
        "multilabel_margin_loss_backward": (one, *multilabel, mean, is_target),
    }


def _pools() -> dict[str, Arguments]:
    small, tiny = torch.rand(2, 4, 4, 4), torch.rand(1, 2, 2, 2, 2)
    flat = ([2, 2], [2, 2], [0, 0], False, True, None)
    deep = ([2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None)
    return {
        **_max_pool(2, IMAGE),
        **_max_pool(3, VOLUME),
        "avg_pool2d": (IMAGE, [2, 2]),
        "avg_pool3d": (VOLUME, [2, 2, 2]),
        "avg_pool2d_backward": (small, IMAGE, *flat),
        "avg_pool3d_backward": (tiny, VOLUME, *deep),
        "_adaptive_avg_pool2d": (IMAGE, [4, 4]),
        "_adaptive_avg_pool3d": (VOLUME, [2, 2, 2]),
        "_adaptive_avg_pool2d_backward": (small, IMAGE),
        "_adaptive_avg_pool3d_backward": (tiny, VOLUME),
    }


def _pads(rank: int, source: torch.Tensor) -> dict[str, Arguments]:
    """Borders of one element, and their gradients."""
    padding = [1, 1] * rank
    wide = torch.rand([*source.shape[:-rank], *(n + 2 for n in source.shape[-rank:])])
    names = (f"reflection_pad{rank}d", f"replication_pad{rank}d")
    return {
        **{name: (source, padding) for name in names},
        **{f"{name}_backward": (wide, source, padding) for name in names},
    }


def _resizes(name: str, source: torch.Tensor, *rest: Any) -> dict[str, Arguments]:
    """Fields of twice the size, and back."""
    size = [2 * n for n in source.shape[2:]]
    large = torch.rand([*source.shape[:2], *size])
    return {
        name: (source, size, *rest),
        f"{name}_backward": (large, size, list(source.shape), *rest),
    }


def _shapes() -> dict[str, Arguments]:
    return {
        **_each("view _unsafe_view", X, [3, 8]),
        "_reshape_alias": (X, [3, 8], [8, 1]),
        "unsqueeze": (X, 0),
        "squeeze": (torch.rand(1, 3),),
        "view_as_real": (torch.rand(3, dtype=torch.complex64),),
        "view_as_complex": (torch.rand(3, 2),),
        "slice": (X, 1, 2, 5),
        "select": (X, 1, 2),
        **_each("split unsafe_split", X, 2, 1),
        **_each("split_with_sizes unsafe_split_with_sizes", X, [2, 4], 1),
        "unbind": (X, 1),
        "as_strided": (X, [2, 2], [1, 2]),
        "unfold": (X, 1, 3, 1),
        **_each("clone lift_fresh_copy alias detach lift", X),
        "im2col": (IMAGE, [2, 2], [1, 1], [0, 0], [2, 2]),
        "col2im": (torch.rand(2, 16, 16), [8, 8], [2, 2], [1, 1], [0, 0], [2, 2]),
        "pixel_shuffle": (IMAGE, 2),
        "pixel_unshuffle": (IMAGE, 2),
        "_conj": (torch.rand(3, dtype=torch.complex64),),
        "permute": (BATCH, [2, 0, 1]),
        "transpose": (BATCH, 0, -1),
        "t": (X,),
        "expand": (torch.rand(4, 1), [4, 6]),
        "diagonal": (X,),
        "copy_": (X, Y),
        **_each("cat stack", [X, X, Y], 1),
        "constant_pad_nd": (X, [1, 1]),
        **_pads(1, BATCH),
        **_pads(2, IMAGE),
        **_pads(3, VOLUME),
        "slice_backward": (torch.rand(4, 3), [4, 6], 1, 0, 3, 1),
        "select_backward": (torch.rand(4), [4, 6], 1, 0),
        "slice_scatter": (X, torch.rand(4, 3), 1, 0, 3),
        "select_scatter": (X, torch.rand(4), 1, 0),
        "repeat": (X, [2, 1]),
        "flip": (X, [1]),
        "roll": (X, [1], [1]),
        **_each("tril triu", X),
        **_resizes("upsample_nearest1d", BATCH),
        **_resizes("upsample_nearest2d", IMAGE),
        **_resizes("upsample_nearest3d", VOLUME),
        **_resizes("upsample_bilinear2d", IMAGE, False),
        **_resizes("upsample_bicubic2d", IMAGE, False),
    }


def _made() -> dict[str, Arguments]:
    """Tensors made from nothing, and random ones."""
    size = [4, 6]
    return {
        **_each("empty zeros ones rand randn", size),
        **_each("empty_like zeros_like ones_like rand_like randn_like", X),
        **_each("new_empty new_zeros new_ones", X, size),
        "empty_strided": (size, [6, 1]),
        "new_empty_strided": (X, size, [6, 1]),
        "full": (size, 2.0),
        "new_full": (X, size, 2.0),
        **_each("full_like fill", X, 2.0),
        "scalar_tensor": (2.0,),
        "zero": (X,),
        "eye": (4,),
        "arange": (6,),
        **_each("linspace logspace", 0.0, 1.0, 6),
        **_each("uniform exponential cauchy log_normal", X),
        "geometric": (X, 0.5),
        "normal": (X, Y),
        "bernoulli": (X / 2,),
        "randint": (4, size),
        "randint_like": (N, 4),
        "random": (X,),
        "randperm": (6,),
        "native_dropout": (X, 0.5, True),
    }


def _gathers() -> dict[str, Arguments]:
    return {
        "embedding": (MATRIX, ROW),
        "embedding_dense_backward": (torch.rand(3, 4), ROW, 6, -1, False),
        "gather": (X, 1, N),
        "index_select": (X, 0, ROW),
        **_each("index _unsafe_index", X, [ROW]),
        "take": (X, N),
        **_each("scatter scatter_add", X, 1, N, Y),
        "scatter_reduce": (X, 1, N, Y, "sum"),
        **_each("index_put _unsafe_index_put", X, [ROW], torch.rand(3, 6)),
        **_each("index_copy index_add", X, 0, ROW, torch.rand(3, 6)),
        "index_reduce": (X, 0, ROW, torch.rand(3, 6), "mean"),
        "index_fill": (X, 0, ROW, 0.0),
        "masked_scatter": (X, MASK, Y),
    }


def _elementwise() -> dict[str, Arguments]:
    return {
        **_each(
            "neg abs exp expm1 log log2 log10 log1p sqrt rsqrt reciprocal sign sgn "
            "round floor ceil trunc frac sin cos tan erf erfc tanh sigmoid relu gelu "
            "silu mish leaky_relu elu celu softplus hardtanh hardsigmoid hardswish "
            "logical_not isnan isinf log_sigmoid_forward hardshrink softshrink exp2 "
            "nan_to_num asin acos atan sinh cosh asinh acosh atanh glu",
            X,
        ),
        "_prelu_kernel": (X, Y),
        "rrelu_with_noise": (X, Y),
        "bitwise_not": (N,),
        "threshold": (X, 0.5, 0.0),
        "pow": (X, Y),
        "special_xlog1py": (X, Y),
        "clamp": (X, Y, Y),
        **_each("clamp_min clamp_max", X, Y),
        **_each("add sub rsub mul div floor_divide remainder fmod", X, Y),
        **_each("maximum minimum fmax fmin atan2 eq ne lt le gt ge", X, Y),
        **_each("copysign hypot logaddexp xlogy", X, Y),
        **_each("logical_and logical_or logical_xor", X, Y),
        **_each("bitwise_and bitwise_or bitwise_xor", N, N),
        **_each("bitwise_left_shift bitwise_right_shift", N, N),
        "where": (MASK, X, Y),
        "masked_fill": (X, MASK, 0.0),
        **_each("addcmul addcdiv", X, Y, Y),
        "lerp": (X, Y, 0.5),
        "threshold_backward": (X, Y, 0.5),
        **_each("tanh_backward sigmoid_backward gelu_backward silu_backward", X, Y),
        **_each("hardsigmoid_backward hardswish_backward mish_backward", X, Y),
        **_each("hardshrink_backward softshrink_backward", X, Y, 0.5),
        "log_sigmoid_backward": (X, Y, _results("log_sigmoid_forward", Y)[1]),
        "leaky_relu_backward": (X, Y, 0.1, False),
        "elu_backward": (X, 1.0, 1.0, 1.0, False, Y),
        "softplus_backward": (X, Y, 1.0, 20.0),
        "hardtanh_backward": (X, Y, -1.0, 1.0),
        "_to_copy": (X,),
    }


def _reductions() -> dict[str, Arguments]:
    return {
        **_each("sum mean amax amin prod any all argmax argmin max min var std", X),
        **_each("nansum count_nonzero", X),
        "logsumexp": (X, [1]),
        **_each("cumsum cumprod", X, 1),
        "var_mean": (X,),
        **_each("linalg_vector_norm norm", X),
        "sort": (X,),
        **_each("topk kthvalue", X, 2),
        "median": (X,),
    }


def _products() -> dict[str, Arguments]:
    turned = BATCH.transpose(1, 2).contiguous()
    kernel = torch.rand(4, 4, 3, 3)
    gradient = (torch.rand(2, 4, 8, 8), IMAGE, kernel, [4])
    places = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
    small = torch.rand(16, 16).to(torch.float8_e4m3fn)
    one = torch.ones(())
    return {
        "mm": (X, MATRIX),
        "_scaled_mm": (small, small.t(), one, one, {"out_dtype": torch.float16}),
        "bmm": (BATCH, turned),
        "addmm": (torch.rand(4), X, MATRIX),
        "baddbmm": (torch.rand(2, 3, 3), BATCH, turned),
        "mv": (X, torch.rand(6)),
        "addmv": (torch.rand(4), X, torch.rand(6)),
        "dot": (torch.rand(6), torch.rand(6)),
        "convolution": _conv(False, kernel),
        "convolution_backward": (*gradient, *places),
        **_each("_softmax _log_softmax", X, 1, False),
        "_safe_softmax": (X, 1),
        **_each(
            "_softmax_backward_data _log_softmax_backward_data",
            *(X, Y, 1, torch.float32),
        ),
        **_attention(),
    }


def _solvers() -> dict[str, Arguments]:
    square, given = torch.eye(3).expand(2, 3, 3).contiguous(), torch.rand(2, 3, 4)
    info = torch.zeros(2, dtype=torch.int32)
    return {
        **_each("linalg_cholesky_ex cholesky", square),
        "cholesky_solve": (given, square),
        "linalg_solve_triangular": (square, given, {"upper": True}),
        "triangular_solve": (given, square),
        "_linalg_check_errors": (info, "cholesky", {"is_matrix": False}),
    }


GROUPS: tuple[Callable[[], dict[str, Arguments]], ...] = (
    _elementwise,
    _reductions,
    _products,
    _norms,
    _pools,
    _gathers,
    _shapes,
    _made,
    _losses,
    _solvers,
)


def make_examples() -> dict[str, Arguments]:
    """Arguments of every operator of the table, by its name without namespace."""
    return {name: args for group in GROUPS for name, args in group().items()}
