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
from popple.engine.torch.updates.update import Slots, UpdateRule, apply_update
from popple.errors import UsageError, suggest

HALF, SINGLE = torch.float16, torch.float32

# A float32 has this many more bits of fraction than a float16.
_SPARE_BITS = 13
_SMALLEST_NORMAL = 2.0**-14
_SMALLEST_STEP = 2.0**-24

SILENT_WRITERS = frozenset({torch.ops.aten.native_batch_norm.default})
"""Operators that write to their running statistics and do not say so."""


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
    _generator: torch.Generator = field(default_factory=torch.Generator)

    def __post_init__(self) -> None:
        self._generator.manual_seed(self.numerics.seed)

    def round(self, x: Tensor) -> Tensor:
        """float32 numbers as float16."""
        rounded = self._to_steps(x) if self.numerics.stochastic_rounding else x
        half = rounded.to(HALF)
        if self.numerics.nan_on_overflow:
            # An infinite operand stays infinite: only a rounding that overflows gives
            # NaN.
            is_too_large = half.isinf() & x.isfinite()
            half = half.masked_fill(is_too_large, torch.nan)
        return half

    def _to_steps(self, x: Tensor) -> Tensor:
        """The float16 below or above each number; the nearer one is likelier.

        The bits a float16 lacks are the chance of the larger magnitude: added to
        random bits they carry into the ones that stay.
        """
        noise = self._noise(x)
        bits = x.contiguous().view(torch.int32)
        # On the bits of the magnitude, so a carry goes to the larger magnitude for both
        # signs.
        normal = ((bits + noise) & -(1 << _SPARE_BITS)).view(SINGLE)
        share = noise / (1 << _SPARE_BITS)
        # Below the smallest normal number the steps of float16 are equally wide, and
        # the bits of a float32, whose exponent goes on, do not line up with them.
        tiny = torch.floor(x / _SMALLEST_STEP + share) * _SMALLEST_STEP
        rounded = torch.where(x.abs() < _SMALLEST_NORMAL, tiny, normal)
        return torch.where(x.isfinite(), rounded, x)

    def _noise(self, x: Tensor) -> Tensor:
        return torch.randint(
            1 << _SPARE_BITS,
            x.shape,
            # Generators belong to a device; ours to the host.
            generator=self._generator if x.device.type == "cpu" else None,
            dtype=torch.int32,
            device=x.device,
        )

    def call(
        self,
        operator: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        expected: list[bool],
    ) -> Any:
        """The operator in float32; results that are `expected` so are rounded.

        Arguments it overwrites are rounded where they are.
        """
        lifted = _Lifted()
        single_args, single_kwargs = pytree.tree_map(lifted.lift, (args, kwargs))
        compute = operator
        if self.numerics.half_partials and lifted.copies:
            # Only where an operand was float16: products of float32 keep float32
            # partials.
            compute = PARTIAL_SUMS.get(operator, lambda *_: operator)(self.round)
        result = compute(*single_args, **single_kwargs)
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
    for node in graph.nodes:
        if node.op == "call_function" and _computes_half(node):
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


def _is_half(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype is HALF
