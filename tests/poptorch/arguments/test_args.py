"""Arguments: binding to `forward`, taking apart, matching later calls."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import poptorch
from poptorch._arguments.args import ArgsParser, BoundArgs, check_tensors, device_dtype
from poptorch._arguments.structure import flatten_tensors, rebuild

ONE, TWO, THREE = torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([3.0])


def parser(function: Callable[..., Any]) -> ArgsParser:
    return ArgsParser(function)


def bound(function: Callable[..., Any], *args: Any, **kwargs: Any) -> BoundArgs:
    return parser(function)(args, kwargs)


def plain(x: Any, y: Any = None, z: Any = 5) -> Any: ...


def variadic(x: Any, *rest: Any, flag: Any = 1, **others: Any) -> Any: ...


def only_named(x: Any, *, y: Any = 2) -> Any: ...


def test_defaults_are_filled_in() -> None:
    result = bound(plain, ONE)
    assert result.arg_names == ("x", "y", "z")
    assert result.args == (ONE, None, 5)
    assert result.kwargs == {}


def test_named_arguments_take_their_place() -> None:
    assert bound(plain, z=3, x=ONE).args == (ONE, None, 3)


def test_forward_of_a_module_without_self() -> None:
    class Model(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any: ...

    assert ArgsParser(Model())((ONE,), {"b": TWO}).arg_names == ("a", "b")


def test_variadic_arguments() -> None:
    result = bound(variadic, ONE, TWO, THREE, extra=4)
    assert result.arg_names == ("x", "*rest[0]", "*rest[1]")
    assert result.kwargs == {"flag": 1, "extra": 4}


def test_keyword_only_arguments_stay_named() -> None:
    result = bound(only_named, ONE)
    assert (result.args, result.kwargs) == ((ONE,), {"y": 2})
    with pytest.raises(AssertionError, match="left over"):
        bound(only_named, ONE, TWO)


def test_builtins_without_signature_take_anything() -> None:
    assert bound(torch.relu, ONE).args == (ONE,)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2, 3, 4), {}, "Too many arguments provided"),
        ((1, 2), {"y": 3}, "y was passed more than once"),
        ((1,), {"w": 3}, "w is not a valid parameter"),
    ],
)
def test_arguments_that_do_not_fit(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        bound(plain, *args, **kwargs)


def test_unknown_names_without_keywords_parameter() -> None:
    def positional(*args: Any) -> Any: ...

    with pytest.raises(AssertionError, match="b is not a valid"):
        bound(positional, 1, b=2)


def test_missing_argument() -> None:
    with pytest.raises(poptorch.Error, match="Mandatory parameter x missing"):
        bound(plain, y=1)


def test_only_callables_have_arguments() -> None:
    with pytest.raises(AssertionError, match="callable"):
        ArgsParser(3)


Pair = namedtuple("Pair", "left right")

STRUCTURES = [
    (ONE, [ONE]),
    ((ONE, [TWO, 3, None]), [ONE, TWO]),
    ({"b": ONE, "a": (TWO,)}, [ONE, TWO]),
    (Pair(ONE, "text"), [ONE]),
    (OrderedDict(x=ONE), [ONE]),
    (7, []),
]


@pytest.mark.parametrize(("structure", "tensors"), STRUCTURES)
def test_flatten_and_rebuild(structure: Any, tensors: list[torch.Tensor]) -> None:
    flat = flatten_tensors(structure)
    assert [id(tensor) for tensor in flat] == [id(tensor) for tensor in tensors]
    twin = rebuild(structure, [tensor + 10 for tensor in flat])
    assert type(twin) is type(structure)
    assert flatten_tensors(twin) == [tensor + 10 for tensor in tensors]


def test_dicts_flatten_in_the_compiled_order() -> None:
    compiled, later = {"a": ONE, "b": TWO}, {"b": TWO, "a": ONE}
    assert flatten_tensors(later, compiled) == [ONE, TWO]


class Named:
    """A user's own type."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data


class NamedParser(poptorch.ICustomArgParser):
    """Knows `Named`."""

    def yieldTensors(self, struct: Named) -> Iterator[torch.Tensor]:
        yield struct.data

    def reconstruct(
        self, original_structure: Named, tensor_iterator: Iterator[torch.Tensor]
    ) -> Named:
        return type(original_structure)(next(tensor_iterator))


@pytest.fixture
def named_parser() -> Iterator[None]:
    poptorch.registerCustomArgParser(Named, NamedParser())
    yield
    poptorch.registerCustomArgParser(Named, None)


@pytest.mark.usefixtures("named_parser")
def test_own_types_and_subclasses() -> None:
    class Special(Named):
        pass

    structure = (Named(ONE), Special(TWO))
    assert flatten_tensors(structure) == [ONE, TWO]
    twin = rebuild(structure, [TWO, THREE])
    assert isinstance(twin[1], Special)
    assert twin[1].data is THREE


def test_unregistered_types_are_constants() -> None:
    assert flatten_tensors(Named(ONE)) == []


def test_parsers_must_be_parsers() -> None:
    with pytest.raises(poptorch.Error, match="ICustomArgParser, not str"):
        poptorch.registerCustomArgParser(Named, "x")  # pyright: ignore[reportArgumentType]


MISMATCHES = [
    ((ONE,), (torch.tensor([1]),), "expected torch.float32 but got torch.int64"),
    (
        (ONE,),
        (torch.ones(2),),
        r"expected torch.Size\(\[1\]\) but got torch.Size\(\[2\]\)",
    ),
    (([ONE],), ((ONE,),), "Type mismatch for x: expected .*list.* but got .*tuple"),
    (
        (ONE, TWO),
        (ONE, None),
        "Type mismatch for y: expected .*Tensor.* but got .*None",
    ),
    (((ONE, TWO),), ((ONE,),), "Length mismatch for x: expected 2 elements but got 1"),
    ((ONE, 5), (ONE, 3), "Value mismatch for y: expected 5 but got 3"),
    ((ONE, 1), (ONE, True), "Type mismatch for y"),
    (({"a": ONE},), ({"b": ONE},), "Unexpected arguments: b. Missing arguments: a."),
    (({"a": [ONE]},), ({"a": [torch.ones(2)]},), r"Shape mismatch for x\[a\]\[0\]"),
]


@pytest.mark.parametrize(("compiled", "later", "message"), MISMATCHES)
def test_later_calls_must_match(
    compiled: tuple[Any, ...], later: tuple[Any, ...], message: str
) -> None:
    parse = parser(plain)
    with pytest.raises(poptorch.Error, match=message) as error:
        parse(compiled, {}).check_matches(parse(later, {}))
    assert "destroy()" in str(error.value)


def test_number_of_positional_arguments() -> None:
    parse = parser(variadic)
    message = "Number of positional arguments mismatch: expected 3 arguments but got 2"
    with pytest.raises(poptorch.Error, match=message):
        parse((1, 2, 3), {}).check_matches(parse((1, 2), {}))


def test_named_arguments_go_by_their_names() -> None:
    parse = parser(variadic)
    with pytest.raises(poptorch.Error, match=r"Keys mismatch.*Missing arguments: m\."):
        parse((ONE,), {"m": 1}).check_matches(parse((ONE,), {}))
    with pytest.raises(poptorch.Error, match="mismatch for m: expected 1 but got 2"):
        parse((ONE,), {"m": 1}).check_matches(parse((ONE,), {"m": 2}))


@pytest.mark.parametrize(
    "value",
    [ONE, (ONE, 2), {"b": ONE, "a": TWO}, None, "s", float("nan"), np.arange(3)],
)
def test_equal_arguments_match(value: Any) -> None:
    parse = parser(plain)
    parse((value,), {}).check_matches(parse((value,), {}))


def test_key_order_and_parameters_match() -> None:
    first = bound(plain, {"a": ONE, "b": TWO})
    second = bound(plain, {"b": torch.nn.Parameter(TWO), "a": THREE})
    first.check_matches(second)


@pytest.mark.usefixtures("named_parser")
def test_own_types_match_by_their_tensors() -> None:
    first = bound(plain, Named(ONE))
    first.check_matches(bound(plain, Named(TWO)))
    with pytest.raises(poptorch.Error, match="Shape mismatch for x"):
        first.check_matches(bound(plain, Named(torch.ones(2))))


def test_tensors_and_rebuild_of_bound_arguments() -> None:
    result = bound(variadic, (ONE, 4), TWO, key=THREE)
    assert result.tensors() == [ONE, TWO, THREE]
    twin = result.rebuild([THREE, ONE, TWO])
    assert twin.args == ((THREE, 4), ONE)
    assert twin.kwargs == {"flag": 1, "key": TWO}


def test_non_contiguous_tensors_are_copied_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parse, tensor = parser(plain), torch.arange(6).reshape(2, 3).t()
    for _ in range(2):
        (copied, *_) = parse((tensor,), {}).args
        assert copied.is_contiguous()
        assert torch.equal(copied, tensor)
    assert len(caplog.messages) == 1
    assert "not contiguous" in caplog.text


def test_dicts_warn_once(caplog: pytest.LogCaptureFixture) -> None:
    parse = parser(plain)
    for _ in range(2):
        parse(([{"a": ONE}],), {})
    assert len(caplog.messages) == 1


def test_zero_sized_tensors_are_refused() -> None:
    message = r"Zero-sized tensors are unsupported \(Got shape \[0, 2, 5, 5\]\)"
    with pytest.raises(poptorch.Error, match=message):
        check_tensors([ONE, torch.empty(0, 2, 5, 5)])


@pytest.mark.parametrize(
    ("host", "device"),
    [
        (torch.int64, torch.int32),
        (torch.float64, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float16),
        (torch.bool, torch.bool),
    ],
)
def test_device_types(host: torch.dtype, device: torch.dtype) -> None:
    assert device_dtype(host) == device


def test_types_the_device_lacks() -> None:
    with pytest.raises(poptorch.Error, match=r"Input tensor 0 has type torch\.complex"):
        check_tensors([torch.ones(1, dtype=torch.complex64)])
