"""Text from outside inside Markdown, as GitHub reads it: it stays text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .printable import printable

_MARKUP = re.compile(r"([\\`*_\[\]<>|~&#$!])")

_START = re.compile(r"(?:[-+=:]|\d+(?=[.)]))")
"""What may begin a list, or a line under a title."""

_LINKED = re.compile(r"(@|#|(?i:(?<=http)|(?<=https)|(?<=ftp)|(?<=xmpp)|(?<=mailto)):|(?i:(?<=www))\.)(?=\S)")
"""What is made a link of even without markup: mentions, issues, addresses. A comment breaks them."""


def plain(text: str) -> str:
    """On one line: no markup, links or mentions are taken from it."""
    line = " ".join(printable(text).split())
    escaped = _LINKED.sub(r"\1<!-- -->", _MARKUP.sub(r"\\\1", line))
    begins = _START.match(escaped)
    if begins is None:
        return escaped
    return f"{begins[0]}\\{escaped[begins.end() :]}" if begins[0].isdigit() else f"\\{escaped}"


def code(text: str, language: str = "") -> str:
    """A block of code, fenced by more backticks than there are in it."""
    shown = printable(text)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", shown)), 3)
    return f"{fence}{language}\n{shown}\n{fence}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
