"""Elements of HTML, and the file around them. What comes from outside gets into them through `text` alone.

A script adds filtering, folding and the scale of the time line; the rest is there without it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

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


OWN_PAGE = "body { margin: 0; } body > .shardscope { min-height: 100vh; box-sizing: border-box; }"
"""The background reaches to the end of the window if nothing else is on the page."""


@cache
def style() -> str:
    """The style sheet."""
    return _own("page.css")


@cache
def script() -> str:
    """The script, which a page allows by its hash."""
    return _own("page.js")


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def page(title: str, parts: Iterable[str], links: Iterable[tuple[str, str]] = ()) -> str:
    """A file that needs nothing from elsewhere; `links` are the anchors that can be gone to, with their names."""
    allowed = b64encode(sha256(script().encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{allowed}'"
    )
    listed = "".join(element("a", text(name), href=f"#{anchor}") for anchor, name in links)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{text(title)}</title>\n<style>{OWN_PAGE}</style>\n</head>\n<body>\n"
        f"{fragment([element('nav', listed), *parts])}<script>{script()}</script>\n</body>\n</html>\n"
    )


def fragment(parts: Iterable[str]) -> str:
    """The same to be put into a page of someone else's."""
    inside = "\n".join(parts)
    return f'<div class="shardscope">\n<style>{style()}</style>\n{inside}\n</div>\n'
