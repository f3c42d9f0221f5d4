"""Tokens of a line of code. Lines are read one by one, as they become visible.

A highlighter takes the number of a line, from 0, and its text, and gives the tokens in it that stand out. Of a line
that is too long to be looked at whole it gets a piece, with the number -1.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Callable

from ..inspector.capture.model import Dialect
from ..inspector.catalog.spellings import PRIMITIVES
from ..inspector.ir.language import Token
from ..inspector.ir.languages import LANGUAGES
from ..parsers.source import Source

Highlighter = Callable[[int, str], list[Token]]

MAX_BYTES = 1 << 20
"""Bytes; a Python file larger than that stays plain."""


def of_dialect(dialect: Dialect) -> Highlighter:
    """The highlighter for the texts of a stage."""
    language = LANGUAGES[dialect]
    return lambda line, text: language.tokens(text)


def plain(line: int, text: str) -> list[Token]:
    """Nothing stands out."""
    return []


def of_python(source: Source) -> Highlighter:
    """The highlighter for one Python file. What comes after an error in it stays plain."""
    tokens: dict[int, list[Token]] = {}
    if len(source.data) <= MAX_BYTES:
        try:
            for token in tokenize.generate_tokens(io.StringIO(source.text()).readline):
                _add(token, tokens)
        except (tokenize.TokenError, SyntaxError):
            pass
    return lambda line, text: tokens.get(line, [])


def _add(token: tokenize.TokenInfo, tokens: dict[int, list[Token]]) -> None:
    kind = _python_kind(token)
    (first, start), (last, end) = token.start, token.end
    if kind is not None:
        for line in range(first, last + 1):
            stop = end if line == last else 1 << 30
            tokens.setdefault(line - 1, []).append((start if line == first else 0, stop, kind))


def _python_kind(token: tokenize.TokenInfo) -> str | None:
    match token.type:
        case tokenize.COMMENT:
            return "aside"
        case tokenize.STRING:
            return "string"
        case tokenize.NAME if keyword.iskeyword(token.string):
            return "keyword"
        case tokenize.NAME if token.string in PRIMITIVES or token.string in ("pmean", "with_sharding_constraint"):
            return "collective"
        case _ if tokenize.tok_name[token.type].startswith("FSTRING"):
            return "string"
        case _:
            return None
