"""HTML of what comes from outside: it stays text, in elements and in attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .printable import printable
from .table import Cell, Column, Role, Table, pieces

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

MOST_ROWS = 500
"""Rows of a table that says nothing of how many."""

STYLE = """
.shardscope { color-scheme: light dark; --text: #1d232b; --back: #fbfbf9; --aside: #5a6472; --line: #d9dad6;
  --raised: #f1f1ee; --good: #1c7a35; --warning: #8a5a00; --error: #b3263a; --axis: #0a5fb4;
  color: var(--text); background: var(--back); font: 15px/1.5 system-ui, sans-serif; padding: 1em;
  overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { .shardscope { --text: #d5dbe3; --back: #10141a; --aside: #8d98a7;
  --line: #2a323c; --raised: #1a2029; --good: #7ccf8a; --warning: #e6b450; --error: #f47f7f; --axis: #6cb6ff; } }
.shardscope h1 { font-size: 1.25em; } .shardscope h2 { font-size: 1.05em; margin: 1.6em 0 .4em; }
.shardscope .scroll { overflow-x: auto; }
.shardscope table { border-collapse: collapse; font-size: .9em; background: none; }
.shardscope th, .shardscope td { text-align: left; vertical-align: top; padding: .2em .7em .2em 0; color: inherit;
  border-bottom: 1px solid var(--line); white-space: pre-line; overflow-wrap: normal; background: none; }
.shardscope th { color: var(--aside); font-weight: normal; }
.shardscope .right { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.shardscope td, .shardscope pre, .shardscope dd { font-family: ui-monospace, Menlo, Consolas, monospace; }
.shardscope pre { background: var(--raised); color: inherit; padding: .5em .7em; overflow-x: auto; font-size: .85em; }
.shardscope pre span { display: block; min-height: 1lh; }
.shardscope article { border-left: 3px solid var(--line); padding-left: .8em; margin: 1em 0; }
.shardscope dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em .8em; font-size: .9em; }
.shardscope dt { color: var(--aside); } .shardscope dd { margin: 0; }
.shardscope .strong { font-weight: bold; } .shardscope .aside { color: var(--aside); }
.shardscope .good { color: var(--good); } .shardscope .warning { color: var(--warning); }
.shardscope .error { color: var(--error); font-weight: bold; } .shardscope .axis { color: var(--axis); }
.shardscope .here { background: var(--line); }
@media (max-width: 40em) { .shardscope { padding: .6em; } .shardscope dl { grid-template-columns: 1fr; } }
"""


def text(value: str) -> str:
    """Text between tags, or in quotes: no markup, no control characters, no change of direction."""
    return escape(printable(value), quote=True)


def element(name: str, inside: str, style: str = "") -> str:
    """An element of HTML that is safe already; the class is one of ours."""
    return f'<{name} class="{style}">{inside}</{name}>' if style else f"<{name}>{inside}</{name}>"


def page(title: str, parts: Iterable[str]) -> str:
    """A file that needs nothing from elsewhere."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{text(title)}</title>\n<style>body {{ margin: 0; }}</style>\n</head>\n<body>\n"
        f"{fragment(parts)}</body>\n</html>\n"
    )


def fragment(parts: Iterable[str]) -> str:
    """The same to be put into a page of someone else's."""
    inside = "\n".join(parts)
    return f'<div class="shardscope">\n<style>{STYLE}</style>\n{inside}\n</div>\n'


def cell(value: Cell) -> str:
    """The pieces, each in its role."""
    return "".join(
        element("span", text(piece.text), CLASSES[piece.role]) if piece.role else text(piece.text)
        for piece in pieces(value)
    )


def table_section(table: Table) -> str:
    """The heading and what is under it; empty for a table that has neither rows nor a heading."""
    columns, rows = table.for_document()
    if not rows and not table.heading:
        return ""
    parts = [element("h2", text(table.heading))] if table.heading else []
    parts += [element("p", cell(line)) for line in table.above]
    if rows:
        shown = rows[: table.most or MOST_ROWS]
        parts.append(element("div", _grid(columns, shown), "scroll"))
        if (more := len(rows) - len(shown)) > 0:
            parts.append(element("p", f"and {more:,} more", "aside"))
    elif table.empty_text:
        parts.append(element("p", text(table.empty_text)))
    if notes := [cell(note) for note in table.notes()]:
        parts.append(element("p", "<br>\n".join(notes)))
    return element("section", "\n".join(parts))


def _grid(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> str:
    styles = ["right" if column.align == "right" else "" for column in columns]
    titles = [element("th", text(column.title), style) for column, style in zip(columns, styles, strict=True)]
    head = element("thead", element("tr", "".join(titles))) if any(column.title for column in columns) else ""
    lines = (
        element("tr", "".join(element("td", cell(each), style) for each, style in zip(row, styles, strict=True)))
        for row in rows
    )
    return element("table", head + element("tbody", "\n".join(lines)))


def code(lines: Iterable[tuple[str, str]]) -> str:
    """Lines of a program or of a diff, each with a class of ours."""
    return element("pre", "".join(element("span", text(line), style) for line, style in lines))


def diff_lines(lines: Iterable[str]) -> str:
    """A unified diff in colours."""
    signs = {"+": "good", "-": "error", "@": "aside"}
    return code((line, signs.get(line[:1], "")) for line in lines)


def facts(labelled: Iterable[tuple[str, str]]) -> str:
    """Labels with texts."""
    pairs = "".join(element("dt", text(label)) + element("dd", text(value)) for label, value in labelled if value)
    return element("dl", pairs) if pairs else ""
