"""The grammars of this folder: `*.lark` files, built once and kept in a cache of the user's.

Lark is imported when the first text is parsed, so that importing the parsers stays cheap. A built grammar is kept as a
pickle in a directory that only the user can write to; without such a directory it is built anew in each process.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .errors import ParseError, Problem
from .source import Source, Span

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput

Actions = Mapping[str, Callable[..., object]]
"""What a rule or terminal means: a rule's action takes the values of its parts, a terminal's action takes its text."""

FOLDER = os.path.dirname(__file__)


class Grammar:
    """One grammar file and what its rules mean.

    The actions run while the text is parsed (LALR), so no tree is built, and nesting in the text costs no recursion.
    A rule without an action has to be inlined by the grammar. An action raises ValueError for a text that is well
    formed and means nothing.
    """

    def __init__(self, file: str, actions: Actions, start: Sequence[str] = ("start",)) -> None:
        self._file = file
        self._actions = actions
        self._start = list(start)

    def parse(self, text: str, start: str | None = None) -> Any:
        """The meaning of a text as the rule `start`; raises ParseError with positions relative to the text."""
        from lark import UnexpectedInput

        try:
            return self._lark.parse(text, start=start)
        except UnexpectedInput as error:
            problem = _problem(text, error, self._lark)
        except ValueError as error:
            source = Source("text", text.encode("utf-8", "replace"))
            problem = Problem(str(error), source, Span(0, len(source.data)))
        raise ParseError(problem) from None

    def fed_by_hand(self) -> Any:
        """Lark's interactive parser, for a grammar whose terminals the caller finds."""
        return self._lark.parse_interactive()

    @cached_property
    def _lark(self) -> Lark:
        return load_grammar(self._file, self._actions, self._start)


def load_grammar(file: str, actions: Actions, start: Sequence[str] = ("start",), **options: Any) -> Lark:
    """The LALR parser of a grammar file in this folder; `options` are Lark's own."""
    import lark

    path = os.path.join(FOLDER, file)
    with open(path, encoding="utf-8") as lines:
        text = lines.read()
    cache = _cache_directory()
    stem = "-".join((os.path.splitext(file)[0].replace(os.sep, "_"), *start))
    version = f"lark{lark.__version__}-python{sys.version_info[0]}.{sys.version_info[1]}"
    # Lark itself compares the cached file with the grammar's text and options, and builds anew when they differ.
    return lark.Lark(
        text,
        parser="lalr",
        start=list(start),
        transformer=_Callbacks(actions),
        source_path=path,
        cache=os.path.join(cache, f"{stem}-{version}.pickle") if cache else False,
        **options,
    )


def anchored(error: ParseError, source: Source, offset: int) -> ParseError:
    """The same error, of a piece that starts at `offset` of a source, with its place in that source."""
    span = Span(error.problem.span.start + offset, error.problem.span.end + offset)
    return ParseError(replace(error.problem, source=source, span=span))


def integers(text: str) -> tuple[int, ...]:
    """The action of a terminal that is a whole list: `1, 2,3`."""
    return tuple(map(int, text.split(",")))


def several(*items: Any) -> tuple[Any, ...]:
    """The action of a rule that is an optional list; an empty one has None as its only part."""
    return () if items == (None,) else items


class _Callbacks:
    """The actions as Lark looks for them: attributes named after rules and terminals."""

    def __init__(self, actions: Actions) -> None:
        for name, action in actions.items():
            setattr(self, name, action if name.isupper() else _spread(action))


def _spread(action: Callable[..., object]) -> Callable[[list[Any]], object]:
    return lambda children: action(*children)


def _cache_directory() -> str | None:
    """A directory for pickles, which only this user can write to; None where there is none.

    Unpickling runs code, so a directory that another user could write to is not used.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(base, "shardscope", "grammars")
    if not os.path.isabs(path) or not hasattr(os, "geteuid"):
        return None
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return path if private else None


def _problem(text: str, error: UnexpectedInput, lark: Lark) -> Problem:
    from lark import UnexpectedCharacters, UnexpectedToken

    source = Source("text", text.encode("utf-8", "replace"))
    start, length = len(text), 0
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        start, length = int(error.token.start_pos), len(error.token)
    elif isinstance(error, UnexpectedCharacters):
        start, length = int(error.pos_in_stream or 0), 1
    first = len(text[:start].encode("utf-8", "replace"))
    span = Span(first, first + len(text[start : start + length].encode("utf-8", "replace")))
    found = repr(text[start : start + min(length, 40)]) if length else "end of the text"
    # What the parser's table lists for its state is more than what it would go on with.
    parser: Any = error.interactive_parser
    names = parser.accepts() - set(lark.lexer_conf.ignore)
    patterns = {terminal.name: terminal.pattern for terminal in lark.terminals}
    expected = sorted(_words(name, patterns.get(name)) for name in names)
    return Problem(f"unexpected {found}", source, span, tuple(expected))


def _words(name: str, pattern: Any) -> str:
    if name == "$END":
        return "the end of the text"
    if pattern is not None and pattern.type == "str":
        return repr(pattern.value)
    return name.lower().replace("_", " ").strip()
