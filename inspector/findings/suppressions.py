"""Comments of the user's files that say what is known already: `# shardscope: ignore[SS04] reason`."""

from __future__ import annotations

import io
import os
import re
import tokenize
from collections.abc import Iterator
from contextlib import suppress

from ..ir.derived import derived
from ..ir.program import Program, SourceFile
from ..report import SourcePosition, Suppression

MARK = b"shardscope:"

MAX_COMMENT_CHARACTERS = 1000
"""Characters of a comment that are read."""

_COMMENT = re.compile(r"#\s*shardscope:\s*ignore\b\s*(?:\[([^\]]*)\])?[\s:,–-]*(.*?)\s*(?=$|\s#)")

NO_PYTHON = (tokenize.TokenError, SyntaxError, UnicodeDecodeError, RecursionError, MemoryError)

_LAYOUT = frozenset((tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER))
"""Tokens with which no statement begins."""


class Comments:
    """The suppressions in the files that a capture is about."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._files: dict[str, tuple[Suppression, ...]] = {}
        if program.script is not None:
            self._of(program.script.name)

    def about(self, place: SourcePosition, rule: str, slug: str) -> Suppression | None:
        """The one that names a rule, by its id or slug, at the innermost of a position's lines that has one."""
        for frame in place.stack:
            for each in self._of(frame.file):
                names = each.first <= frame.line <= each.last and {*map(str.lower, each.rules)}
                if names and {rule.lower(), slug} & names:
                    return each
        return None

    def all(self) -> set[Suppression]:
        """Suppressions of all files that were read."""
        return {each for file in self._files.values() for each in file}

    def _of(self, file: str) -> tuple[Suppression, ...]:
        file = os.path.normpath(file)
        if file not in self._files:
            source = self._program.file(file)
            self._files[file] = () if source is None else suppressions_in(source)
        return self._files[file]


@derived
def suppressions_in(source: SourceFile) -> tuple[Suppression, ...]:
    """The comments of a Python file; none of a text that is no Python. Nothing of it is executed.

    A comment holds for the whole statement that it stands in or behind, of a compound one for its head; on a line of
    its own for the next one.
    """
    if MARK not in source.data:
        return ()
    found: list[Suppression] = []
    with suppress(*NO_PYTHON):  # what was found before the place where it ceases to be Python holds
        found.extend(_read(source))
    return tuple(found)


def _read(source: SourceFile) -> Iterator[Suppression]:
    waiting: list[tokenize.TokenInfo] = []
    first: int | None = None
    for token in tokenize.tokenize(io.BytesIO(source.data).readline):
        if token.type == tokenize.COMMENT:
            waiting.append(token)
        elif token.type == tokenize.NEWLINE:
            last = token.start[0]
            for comment in waiting:
                yield from _suppression(source.name, comment, first or last, last)
            waiting, first = [], None
        elif first is None and token.type not in _LAYOUT:
            first = token.start[0]


def _suppression(file: str, comment: tokenize.TokenInfo, first: int, last: int) -> Iterator[Suppression]:
    said = _COMMENT.search(comment.string[:MAX_COMMENT_CHARACTERS])
    if said is not None:
        names = tuple(filter(None, (name.strip() for name in (said[1] or "").split(","))))
        yield Suppression(file, comment.start[0], names, said[2], min(first, comment.start[0]), last)
