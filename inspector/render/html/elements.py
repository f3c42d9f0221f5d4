"""Elements of HTML. What comes from outside gets into them through `text` alone."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ....parsers.source import Source
from ..printable import printable
from ..table import Cell, Role, pieces

AROUND = 2
"""Lines before and after the one that an excerpt is of."""

CLASSES: dict[Role, str] = {
    "strong": "strong",
    "aside": "aside",
    "good": "good",
    "warning": "warning",
    "error": "error",
    "added": "good",
    "removed": "error",
    "changed": "warning",
    "axis": "axis",
}


def text(value: str) -> str:
    """Text between tags, or in quotes: no markup, no control characters, no change of direction."""
    return escape(printable(value), quote=True)


def element(name: str, inside: str, style: str = "", /, **attributes: str) -> str:
    """An element of HTML that is safe already; the class is one of ours, and so are attributes but for their text."""
    given = {"class": style, **attributes}
    listed = "".join(f' {key}="{text(value)}"' for key, value in given.items() if value)
    return f"<{name}{listed}>{inside}</{name}>"


def cell(value: Cell) -> str:
    """The pieces, each in its role."""
    return "".join(
        element("span", text(piece.text), CLASSES[piece.role]) if piece.role else text(piece.text)
        for piece in pieces(value)
    )


def code(lines: Iterable[tuple[str, str]]) -> str:
    """Lines of a program or of a diff, each with a class of ours."""
    return element("pre", "".join(element("span", text(line), style) for line, style in lines))


def excerpt(source: Source | None, line: int) -> str:
    """A line, counted from 1, with those around it; empty where there is no such line."""
    lines = [] if source is None else source.text().splitlines()
    if not 0 < line <= len(lines):
        return ""
    first = max(line - AROUND, 1)
    shown = enumerate(lines[first - 1 : line + AROUND], first)
    return code((f"{number:>5}  {each}", "here" if number == line else "") for number, each in shown)


def diff_lines(lines: Iterable[str]) -> str:
    """A unified diff in colours."""
    signs = {"+": "good", "-": "error", "@": "aside"}
    return code((line, signs.get(line[:1], "")) for line in lines)


def facts(labelled: Iterable[tuple[str, str]]) -> str:
    """Labels with texts."""
    pairs = "".join(element("dt", text(label)) + element("dd", text(value)) for label, value in labelled if value)
    return element("dl", pairs) if pairs else ""


def section(anchor: str, heading: str, inside: str, *, is_open: bool = True) -> str:
    """A part of a page, to be folded, that a link may name."""
    summary = element("summary", element("h2", text(heading)))
    opened = ' open=""' if is_open else ""
    return f'<details class="section" id="{text(anchor)}"{opened}>{summary}{inside}</details>'
