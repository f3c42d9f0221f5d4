"""The errors of the library: one base class, and the parse error that draws its place in the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .record import Record
from .source import Source, Span

T = TypeVar("T")


class ShardscopeError(Exception):
    """Base of every error that shardscope raises on purpose; its text is fit to be shown to a user."""


class Problem(Record, frozen=True):
    """Something in a text that could not be read, as a value: parsing went on after it.

    `expected` names, in words, what would have been accepted at the start of `span`.
    """

    message: str
    source: Source
    span: Span
    expected: tuple[str, ...] = ()

    def __str__(self) -> str:
        line, column = self.source.position(self.span.start)
        text = f"{self.source.name}:{line}:{column}: {self.message}\n{self.source.excerpt(self.span)}"
        return f"{text}\nexpected {_one_of(self.expected)}" if self.expected else text


def problem_in(
    text: str, message: str, start: int = 0, end: int | None = None, expected: tuple[str, ...] = ()
) -> Problem:
    """The problem of a text by itself, at some of its characters."""
    data, places = text.encode("utf-8", "replace"), (start, len(text) if end is None else end)
    span = Span(*(len(text[:place].encode("utf-8", "replace")) for place in places))
    return Problem(message, Source("text", data), span, expected)


class ParseError(ShardscopeError):
    """A text, or a piece of one, that is not in the language; `problem` says where and what was expected."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def readable(read: Callable[[], T]) -> T | None:
    """Return the parsed value, or None for an unknown spelling: the enclosing text is still shown."""
    try:
        return read()
    except ParseError:
        return None


def _one_of(choices: tuple[str, ...]) -> str:
    *rest, last = choices
    return f"{', '.join(rest)} or {last}" if rest else last
