"""float16 arithmetic of the machine: stochastic rounding, half partials, overflow.

A host computes float16 operators in its own ways and rounds to nearest. With a
Numerics, every operator that gives float16 is computed in float32 and its results
rounded as the machine does: at random in proportion to the distance, and with NaN in
place of numbers that are too large. Products and convolutions may also keep their
partial sums in float16. A Graph without float16 is left as it is.

    Numerics --Arithmetic--> use_arithmetic(graph)       operators of a step
                        `--> Arithmetic.update           weight updates
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.fx import Graph, Node

from popple.engine.torch.partials import PARTIAL_SUMS
from popple.engine.torch.rewrites.views import SILENT_WRITERS, overwrites
from popple.engine.torch.rewrites.wide import compute_in_float, laid_out_like
from popple.engine.torch.rounding import HalfRounding
from popple.engine.torch.updates.update import Slots, UpdateRule, apply_update
from popple.errors import UsageError, suggest

HALF, SINGLE = torch.float16, torch.float32

# Numbers from here on are nearer to 2**16, which float16 does not have, than to 65504.
_TOO_LARGE = 65520.0

aten = torch.ops.aten
EXACT = frozenset(
    {
        aten._unsafe_view.default,
        aten.abs.default,
        aten.amax.default,
        aten.amin.default,
        aten.cat.default,
        aten.clone.default,
        aten.embedding.default,
        aten.empty.memory_format,
        aten.empty_like.default,
        aten.flip.default,
        aten.gather.default,
        aten.index.Tensor,
        aten.index_select.default,
        aten.max.dim,
        aten.max_pool2d_with_indices.default,
        aten.maximum.default,
        aten.min.dim,
        aten.minimum.default,
        aten.neg.default,
        aten.new_zeros.default,
        aten.ones_like.default,
        aten.relu.default,
        aten.repeat.default,
        aten.roll.default,
        aten.select_scatter.default,
        aten.slice_scatter.default,
        aten.sort.default,
        aten.stack.default,
        aten.threshold_backward.default,
        aten.topk.default,
        aten.where.self,
        aten.zeros.default,
        aten.zeros_like.default,
    }
)
"""Operators whose results are among their operands, but for signs, or 0 or 1."""


@dataclass(frozen=True)
class Numerics:
    """What of the machine's float16 arithmetic is wanted."""

    stochastic_rounding: bool = False
    half_partials: bool = False
    nan_on_overflow: bool = False
    seed: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether the host's arithmetic will do."""
        wanted = (self.stochastic_rounding, self.half_partials, self.nan_on_overflow)
        return not any(wanted)


_ALL = "all"
_NAMES = {f.name.replace("_", "-"): f.name for f in fields(Numerics)[:-1]}


def choose_numerics(names: Iterable[str], seed: int = 0) -> Numerics:
    """The parts of the machine's arithmetic that have these names, or `all`."""
    chosen = set(names)
    if _ALL in chosen:
        chosen = set(_NAMES)
    for name in sorted(chosen - set(_NAMES)):
        raise UsageError(
            f"{name!r} is no part of the machine's arithmetic.",
            where="POPPLE_NUMERICS",
            remedy=suggest(name, [*_NAMES, _ALL]),
        )
    return Numerics(**{_NAMES[name]: True for name in chosen}, seed=seed)


@dataclass(frozen=True)
class Arithmetic:
    """Computes as a Numerics says; has random numbers of its own."""

    numerics: Numerics
    _at_random: HalfRounding = field(init=False)

    def __post_init__(self) -> None:
        numerics = self.numerics
        rounding = HalfRounding(numerics.seed, gives_nan=numerics.nan_on_overflow)
        object.__setattr__(self, "_at_random", rounding)

    def round(self, x: Tensor) -> Tensor:
        """float32 numbers as float16."""
        if self.numerics.stochastic_rounding:
            return self._at_random(x)
        half = x.to(HALF)
        if not self.numerics.nan_on_overflow or _fits(x):
            return half
        # An infinite operand stays infinite: only a rounding that overflows gives
        # NaN.
        return half.masked_fill(half.isinf() & x.isfinite(), torch.nan)

    def node(self, graph: Graph, wide: Node, like: Tensor) -> Node:
        """A node that rounds another."""
        return graph.call_function(self.round, (laid_out_like(graph, wide, like),))

    def call(
        self,
        operator: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        expected: list[bool],
    ) -> Any:
        """An operator in place, in float32; results `expected` so are rounded.

        Arguments it overwrites are rounded where they are.
        """
        lifted = _Lifted()
        single_args, single_kwargs = pytree.tree_map(lifted.lift, (args, kwargs))
        result = operator(*single_args, **single_kwargs)
        for argument in overwritten(operator, args, kwargs):
            if id(argument) in lifted.copies:
                argument.copy_(self.round(lifted.copies[id(argument)][1]))
        return self._rounded(result, expected, lifted)

    def _rounded(self, result: Any, expected: list[bool], lifted: _Lifted) -> Any:
        leaves, structure = pytree.tree_flatten(result)
        owners = {id(copy): original for original, copy in lifted.copies.values()}
        made: list[Any] = []
        for leaf, is_half in zip(leaves, expected, strict=True):
            # An operator in place returns its operand: the caller expects the float16
            # original, which was rounded above.
            if id(leaf) in owners:
                made.append(owners[id(leaf)])
            else:
                made.append(self.round(leaf) if is_half else leaf)
        return pytree.tree_unflatten(made, structure)

    def update(
        self,
        rule: UpdateRule,
        weights: dict[str, Tensor],
        gradients: dict[str, Tensor],
        state: Slots,
    ) -> None:
        """Update weights in float32; those of float16 are rounded afterwards."""
        names = [name for name in gradients if weights[name].dtype is HALF]
        single = {**weights, **{name: weights[name].to(SINGLE) for name in names}}
        given = {**gradients, **{name: gradients[name].to(SINGLE) for name in names}}
        apply_update(rule, single, given, state)
        for name in names:
            weights[name].copy_(self.round(single[name]))


class _Lifted:
    """float16 arguments of a call with their float32 copies."""

    def __init__(self) -> None:
        self.copies: dict[int, tuple[Tensor, Tensor]] = {}

    def lift(self, leaf: Any) -> Any:
        """The argument, in float32 if it is, or names, a float16."""
        if leaf is HALF:
            return SINGLE
        if not isinstance(leaf, Tensor) or leaf.dtype is not HALF:
            return leaf
        # An operand that is given twice must stay one tensor, since the operator may
        # write to it.
        if id(leaf) not in self.copies:
            self.copies[id(leaf)] = (leaf, leaf.to(SINGLE))
        return self.copies[id(leaf)][1]


def overwritten(
    operator: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Tensor]:
    """The tensors an operator writes to, running statistics included."""
    declared = enumerate(operator._schema.arguments)
    places = {i: a for i, a in declared if a.alias_info and a.alias_info.is_write}
    written = [
        args[place] if place < len(args) else kwargs.get(argument.name)
        for place, argument in places.items()
    ]
    if operator in SILENT_WRITERS:
        written += args[3:5]
    return [t for t in pytree.tree_leaves(written) if isinstance(t, Tensor)]


def use_arithmetic(graph: Graph, arithmetic: Arithmetic) -> None:
    """Let the graph's float16 operators compute by `arithmetic`."""
    rounded = {n for n in graph.nodes if n.op == "call_function" and _computes_half(n)}
    in_place = {node for node in rounded if overwrites(node)}
    chosen = {n for n in rounded - in_place if n.target not in EXACT}
    forms: dict[Any, Callable[..., Any]] = {}
    if arithmetic.numerics.half_partials:
        forms = {key: form(arithmetic.round) for key, form in PARTIAL_SUMS.items()}
    compute_in_float(graph, chosen.__contains__, arithmetic.node, forms)
    for node in in_place:
        node.target = _machine_operator(node, arithmetic)


def _machine_operator(node: Node, arithmetic: Arithmetic) -> Callable[..., Any]:
    operator: Any = node.target
    expected = [_is_half(leaf) for leaf in pytree.tree_leaves(node.meta["val"])]

    def machine_operator(*args: Any, **kwargs: Any) -> Any:
        return arithmetic.call(operator, args, kwargs, expected)

    return machine_operator


def _computes_half(node: Node) -> bool:
    """Whether a node makes or overwrites float16 numbers; views only show them."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    schema = node.target._schema
    is_view = any(r.alias_info is not None for r in schema.returns)
    if is_view and not schema.is_mutable:
        return False
    values = [node.meta.get("val")]
    if schema.is_mutable:
        values += [source.meta.get("val") for source in node.all_input_nodes]
    return any(_is_half(leaf) for leaf in pytree.tree_leaves(values))


def _fits(x: Tensor) -> bool:
    """Whether no number is too large for float16, and none is infinite or NaN."""
    if not x.numel():
        return True
    low, high = torch.aminmax(x)
    return float(low) > -_TOO_LARGE and float(high) < _TOO_LARGE


def _is_half(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype is HALF
