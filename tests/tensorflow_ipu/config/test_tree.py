"""Configurations as trees: names, types, texts, deprecation, saving."""

from __future__ import annotations

import copy
import enum
from typing import Any

import pytest
from tensorflow.python.ipu import config
from tensorflow.python.platform import tf_logging


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@config.deprecate_config_attribute("old", "Use weight.")
class Inner(config._ConfigBase):
    def __init__(self) -> None:
        """How heavy it is."""
        self.weight = 1.5
        self.old = 3


class Deep(config._ConfigBase):
    def __init__(self) -> None:
        self.inner = Inner()


@config.deprecate_config_attributes({"gone": "Nobody needs it."})
class Outer(config._ConfigBase):
    """A thing."""

    def __init__(self) -> None:
        """
        Which sizes it may have.

        Two lines of text.
        """
        self.sizes: int | list[int] | tuple[int, ...] = []
        self.colour = Colour.RED
        """What lies inside."""
        self.inside = Inner()
        self.gone = Deep()
        self._declare_rest()
        self._finalize_base_config()

    def _declare_rest(self) -> None:
        """What it is called."""
        self.name: str = "thing"


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(tf_logging, "warn", said.append)
    return said


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (3, True),
        ([1, 2], True),
        ((1,), True),
        (True, False),
        ([1.0], False),
        ([True], False),
        (None, False),
    ],
)
def test_types_are_exact(value: Any, fits: bool) -> None:
    thing = Outer()
    if fits:
        thing.sizes = value
        assert thing.sizes == value
        return
    with pytest.raises(
        TypeError, match=r"set sizes to .* must be of type typing.Union"
    ):
        thing.sizes = value


def test_the_default_shows_the_type() -> None:
    with pytest.raises(TypeError, match=r"inside\.weight to 2, but .* type float"):
        Outer().inside.weight = 2


@pytest.mark.parametrize("name", ["siezs", "sizes_"])
def test_unknown_names_are_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' is not .* Did you mean 'sizes'"):
        setattr(Outer(), name, 1)


def test_the_nearest_name_is_a_full_one() -> None:
    with pytest.raises(ValueError, match=r"Did you mean 'inside\.weight'\?"):
        _ = Outer().inside.weigth


def test_names_unlike_any_have_no_suggestion() -> None:
    with pytest.raises(ValueError, match=r"of this config\.$"):
        _ = Outer().inside.q


def test_attributes_are_made_in_init_only() -> None:
    with pytest.raises(ValueError, match="'_private' is not a valid attribute"):
        Outer()._private = 1


def test_categories_cannot_be_assigned() -> None:
    with pytest.raises(Exception, match="inside is a category"):
        Outer().inside = Inner()


def test_metadata_of_an_option() -> None:
    found = Outer().get_attribute_metadata("sizes")
    assert found.type == "typing.Union[int, typing.List[int], typing.Tuple[int, ...]]"
    assert (found.name, found.default, found.actual_type) == ("sizes", [], None)
    assert found.__doc__ == "Which sizes it may have.\n\nTwo lines of text."
    assert not found.deprecated


def test_metadata_of_a_category() -> None:
    found = Outer().get_attribute_metadata("inside")
    assert (found.type, found.default) == (None, None)
    assert found.__doc__ == "What lies inside."


def test_metadata_is_relative_to_the_category() -> None:
    inside = Outer().inside
    assert inside.get_attribute_metadata("weight").name == "inside.weight"
    with pytest.raises(ValueError, match=r"metadata for 'inside\.weight': 'inside'"):
        inside.get_attribute_metadata("inside.weight")


def test_methods_beside_init_declare_attributes_too() -> None:
    assert Outer().get_attribute_metadata("name").__doc__ == "What it is called."


def test_deprecated_options_warn_when_set(warnings: list[str]) -> None:
    thing = Outer()
    thing.inside.old = 4
    assert warnings == ["inside.old has been deprecated: Use weight."]


def test_deprecation_of_a_category_reaches_what_is_in_it(warnings: list[str]) -> None:
    thing = Outer()
    thing.gone.inner.weight = 2.5
    thing.gone.inner.old = 4
    assert warnings == [
        "gone.inner.weight has been deprecated: Nobody needs it.",
        "gone.inner.old has been deprecated: Use weight.",
    ]


def test_the_class_documents_itself_once() -> None:
    Outer()
    text = str(Outer().__doc__)
    assert text.startswith("A thing.\n\n      .. _sizes:")
    assert text.count(".. py:attribute:: inside.weight\n") == 1
    assert "            :value: 1.5\n" in text
    assert "DEPRECATED: Nobody needs it." in text


def test_dictionary_there_and_back() -> None:
    thing = Outer()
    thing.colour = Colour.GREEN
    thing.inside.weight = 7.0
    saved = thing.to_dict()
    assert saved["colour"] == 2
    other = Outer()
    other.from_dict(saved)
    assert (other.colour, other.inside.weight) == (Colour.GREEN, 7.0)


def test_json_without_a_value_keeps_it(warnings: list[str]) -> None:
    thing = Outer()
    thing.from_json('{"name": "other"}')
    assert (thing.name, thing.sizes) == ("other", [])
    assert "sizes didn't have a value" in warnings[0]


def test_copies_are_independent() -> None:
    thing: Any = Outer()
    thing.sizes = [1]
    copied = copy.deepcopy(thing)
    copied.sizes.append(2)
    copied.inside.weight = 0.5
    assert (thing.sizes, thing.inside.weight) == ([1], 1.5)


def test_defaults_are_not_shared() -> None:
    thing: Any = Outer()
    thing.sizes.append(1)
    assert Outer().sizes == thing.get_attribute_metadata("sizes").default == []


def test_printing_names_every_option() -> None:
    lines = repr(Outer()).splitlines()
    assert lines[0] == "Outer:"
    assert "  colour = Colour.RED" in lines
    assert "  gone.inner.weight = 1.5" in lines


class Ambiguous(config._ConfigBase):
    def __init__(self) -> None:
        self.x: int | Colour = 1


def test_saved_values_must_be_readable_again() -> None:
    with pytest.raises(ValueError, match="cannot have a Union of int and Enum"):
        Ambiguous()
