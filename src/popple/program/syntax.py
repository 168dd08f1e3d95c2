"""The notation under the text form of a Program: statements with nested blocks.

    word "name" 3 key=1 key="text" key=["a", "b"] key=[1400x24, 72x0] flag {
      word ...
    }

Knows nothing of steps; `parse` gives the statements their meaning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeAlias

from popple.errors import ProgramError, suggest
from popple.program.tiles import TileVector

Item: TypeAlias = str | tuple[int, ...]
"""In a list: a text, a run `1400x24` or a flow `0->1:64`."""
Value: TypeAlias = str | int | tuple[Item, ...]

# Flows and runs stand before plain integers, which would match their first digits.
_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<flow>\d+->\d+:-?\d+)|(?P<run>\d+x-?\d+)|(?P<int>-?\d+)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<mark>[{}\[\],=])|(?P<bad>\S)"
)


class Token(NamedTuple):
    """A piece of a line: what kind it is, its text, and the line's number."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class Statement:
    """One word with its arguments, settings, flags and block (None: no block)."""

    word: str
    arguments: tuple[Value, ...]
    settings: Mapping[str, Value]
    flags: frozenset[str]
    block: tuple[Statement, ...] | None
    line: int

    def expect(
        self,
        arguments: int = 0,
        settings: Collection[str] = (),
        flags: Collection[str] = (),
    ) -> None:
        """Raise unless this has so many arguments and nothing unknown beside them."""
        if len(self.arguments) != arguments:
            self.fail(f"takes {arguments} arguments, got {len(self.arguments)}")
        for name, known in ((self.settings, settings), (self.flags, flags)):
            for unknown in sorted(set(name) - set(known)):
                self.fail(f"has no {unknown!r}", suggest(unknown, known))

    def text(self, key: int | str) -> str:
        """The argument or setting `key` as a text; a setting may be absent: empty."""
        value = self._value(key, "")
        return value if isinstance(value, str) else self._refuse(key, "a text")

    def integer(self, key: int | str, default: int = 0) -> int:
        """The argument or setting `key` as an integer."""
        value = self._value(key, default)
        return value if isinstance(value, int) else self._refuse(key, "an integer")

    def texts(self, key: str) -> tuple[str, ...]:
        """The setting `key` as a list of texts, empty if absent."""
        items = self._items(key)
        texts = tuple(item for item in items if isinstance(item, str))
        return texts if len(texts) == len(items) else self._refuse(key, "texts")

    def tuples(self, key: int | str, size: int) -> tuple[tuple[int, ...], ...]:
        """The argument or setting `key` as tuples of `size` integers."""
        items = self._items(key)
        rows = tuple(item for item in items if not isinstance(item, str))
        if len(rows) != len(items) or any(len(row) != size for row in rows):
            self._refuse(key, "runs like 1400x24 or flows like 0->1:64")
        return rows

    def vector(self, key: int | str) -> TileVector:
        """The argument or setting `key` as a tile vector."""
        if isinstance(key, str) and key not in self.settings:
            self.fail(f"lacks {key}=[...]")
        return TileVector.of((row[0], row[1]) for row in self.tuples(key, 2))

    def inner(self) -> tuple[Statement, ...]:
        """The statements of the block, which must be there."""
        if self.block is None:
            self.fail("lacks a block in braces")
        return self.block

    def fail(self, what: str, remedy: str = "") -> NoReturn:
        """Raise ProgramError for this statement."""
        where = f"line {self.line}"
        raise ProgramError(f"{self.word} {what}.", where=where, remedy=remedy)

    def _value(self, key: int | str, default: Value) -> Value:
        if isinstance(key, int):
            return self.arguments[key]
        return self.settings.get(key, default)

    def _items(self, key: int | str) -> tuple[Item, ...]:
        value = self._value(key, ())
        return value if isinstance(value, tuple) else self._refuse(key, "a list")

    def _refuse(self, key: int | str, wanted: str) -> NoReturn:
        name = f"argument {key + 1}" if isinstance(key, int) else key
        self.fail(f"needs {wanted} as {name}")


def parse_statement(text: str) -> Statement:
    """The one statement that makes up `text`; ProgramError names a bad line."""
    reader = _Reader(tuple(_tokens(text)))
    statement = reader.statement()
    reader.expect_end()
    return statement


def _tokens(text: str) -> Iterator[Token]:
    for number, line in enumerate(text.split("\n"), start=1):
        for found in _TOKEN.finditer(line):
            kind = found.lastgroup or "bad"
            if kind == "bad":
                what = f"cannot read {line[found.start() :].strip()!r}."
                raise ProgramError(what, where=f"line {number}")
            yield Token(kind, found[kind], number)


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        # An end token lets every reader peek without asking whether tokens are left.
        last_line = tokens[-1].line if tokens else 1
        self._tokens = (*tokens, Token("end", "the end", last_line))
        self._next = 0

    def statement(self) -> Statement:
        first = self._take("word")
        arguments: list[Value] = []
        settings: dict[str, Value] = {}
        flags: set[str] = set()
        # Arguments end with the line; the block may follow on the same line.
        while self._peek().line == first.line and not self._is_at("{", "}", "the end"):
            if self._peek().kind != "word":
                arguments.append(self._value())
                continue
            word = self._take("word").text
            if self._is_at("="):
                self._take("mark")
                settings[word] = self._value()
            else:
                flags.add(word)
        return Statement(
            first.text,
            tuple(arguments),
            settings,
            frozenset(flags),
            self._block() if self._is_at("{") else None,
            first.line,
        )

    def expect_end(self) -> None:
        self._take("end")

    def _block(self) -> tuple[Statement, ...]:
        self._take("mark")
        inner: list[Statement] = []
        while not self._is_at("}"):
            inner.append(self.statement())
        self._take("mark")
        return tuple(inner)

    def _value(self) -> Value:
        if not self._is_at("["):
            token = self._take("text", "int")
            return int(token.text) if token.kind == "int" else _text_of(token)
        self._take("mark")
        items: list[Item] = []
        while not self._is_at("]"):
            items.append(_item_of(self._take("text", "run", "flow")))
            if not self._is_at("]"):
                self._take_mark(",")
        self._take("mark")
        return tuple(items)

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _is_at(self, *texts: str) -> bool:
        return self._peek().kind in ("mark", "end") and self._peek().text in texts

    def _take_mark(self, mark: str) -> None:
        if not self._is_at(mark):
            self._refuse(repr(mark))
        self._next += 1

    def _take(self, *kinds: str) -> Token:
        token = self._peek()
        if token.kind not in kinds:
            self._refuse(" or ".join(kinds))
        self._next += 1
        return token

    def _refuse(self, wanted: str) -> NoReturn:
        token = self._peek()
        what = f"expected {wanted}, found {token.text!r}."
        raise ProgramError(what, where=f"line {token.line}")


def _text_of(token: Token) -> str:
    try:
        return str(json.loads(token.text))
    except json.JSONDecodeError as error:
        what = f"{token.text} is not a JSON string: {error.msg}."
        raise ProgramError(what, where=f"line {token.line}") from None


def _item_of(token: Token) -> Item:
    if token.kind == "text":
        return _text_of(token)
    return tuple(int(number) for number in re.findall(r"-?\d+", _spaced(token.text)))


def _spaced(text: str) -> str:
    # The dash of an arrow is not the sign of the number behind it.
    return text.replace("->", " ")
