"""Tables: each row can be linked to, and opened where more is known of it, as the flow of a sharding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ...report import CollectiveCause, Report, ShardedValue, Why
from ...units import plural
from ..table import Cell, Column, Row, Table, plain_text
from ..why_lines import cause_line, origin_text, remedy_line, step_text
from .elements import cell, code, element, facts, section, text

MAX_ROWS = 500
"""Rows of a table."""

MAX_NOTES = 4
"""Lines under a table that are not folded."""

MAX_CODE = 200
"""Lines of one detail."""

MAX_SHORT = 20
"""Characters of a cell that stays on one line."""

More = Callable[[object], str]
"""The content of an opened row."""


def table_section(table: Table, prefix: str = "", more: More | None = None, *, is_open: bool = True) -> str:
    """The heading and what is under it; empty for a table that has neither rows nor a heading."""
    columns, rows = table.for_document()
    if not rows and not table.heading:
        return ""
    parts = [element("p", cell(line)) for line in table.above]
    if rows:
        anchor = f"{prefix}{table.id}"
        lines = "\n".join(_lines(anchor, columns, rows[:MAX_ROWS], more or (lambda value: details(table, value))))
        parts.append(element("div", element("table", _head(columns) + element("tbody", lines)), "scroll"))
        if (left_out := len(rows) - MAX_ROWS) > 0:
            parts.append(element("p", f"and {left_out:,} more", "aside"))
    elif table.empty_text:
        parts.append(element("p", text(table.empty_text)))
    if notes := [cell(note) for note in table.notes()]:
        said = element("p", "<br>\n".join(notes))
        parts.append(
            said if len(notes) <= MAX_NOTES else element("details", element("summary", "more about these") + said)
        )
    return section(f"{prefix}{table.id}", table.heading or table.title, "\n".join(parts), is_open=is_open)


def details(table: Table, value: object) -> str:
    """Facts of a row beyond its cells."""
    found = [detail for detail in table.details(value) if detail.text]
    labelled = facts((detail.label, detail.text) for detail in found if not detail.is_code)
    return labelled + "".join(_code(detail.text.splitlines()) for detail in found if detail.is_code)


def _code(lines: Sequence[str]) -> str:
    shown = code((line, "") for line in lines[:MAX_CODE])
    left_out = len(lines) - MAX_CODE
    return shown + (element("p", f"and {plural(left_out, 'more line')}", "aside") if left_out > 0 else "")


def _head(columns: Sequence[Column]) -> str:
    if not any(column.title for column in columns):
        return ""
    titles = (element("th", text(column.title), column.align.replace("left", "")) for column in columns)
    return element("thead", element("tr", element("th", "") + "".join(titles)))


def _lines(anchor: str, columns: Sequence[Column], rows: Sequence[Row], more: More) -> Iterator[str]:
    styles = [column.align.replace("left", "") for column in columns]
    for number, row in enumerate(rows, 1):
        name, inside = f"{anchor}-{number}", more(row.value)
        mark = element("td", element("a", "▸" if inside else "·", href=f"#{name}"), "mark")
        cells = "".join(map(_cell, row.cells, styles))
        yield element("tr", mark + cells, "opens" if inside else "", id=name)
        if inside:
            yield element("tr", element("td", inside, colspan=str(len(columns) + 1)), "more")


def _cell(value: Cell, style: str) -> str:
    """A short text is not broken, as it would be at each hyphen of `all-to-all`."""
    is_short = not style and 0 < len(plain_text(value)) <= MAX_SHORT
    return element("td", cell(value), "short" if is_short else style)


MAX_STEPS = 12
"""Steps of one flow, those next to the value."""


def flows(value: object, report: Report) -> str:
    """The flow of each propagated axis of a value, and what else is known of it."""
    if not isinstance(value, ShardedValue):
        return ""
    ways = [each for each in report.on_demand.why(value, None) if each.steps]
    known = facts(
        [
            ("type", str(value.type)),
            ("per device", "" if value.local_type is None else str(value.local_type)),
            ("from", value.source.function_text(report.script)),
        ]
    )
    return known + "".join(_flow(each, report) for each in ways) if ways else ""


def _flow(found: Why, report: Report) -> str:
    steps = list(reversed(found.steps[:MAX_STEPS]))
    first = origin_text(found, report)
    boxes = [f"{found.axis} on {found.root}: {first}"]
    left_out = found.omitted + len(found.steps) - len(steps)
    boxes += [f"{left_out} more steps"] if left_out else []
    for step in steps:
        boxes.append(f"{step_text(step, report)}: {step.target}")
    return _boxes(boxes)


def cause_flows(causes: Iterable[CollectiveCause], report: Report) -> Iterator[str]:
    """The causes of inserted collectives: the value's sharding, the operation, and the sharding that it needs."""
    for cause in causes:
        yield element("p", text(cause_line(cause, report)))
        if cause.moved is not None and cause.before is not None and cause.after is not None:
            place = cause.place.text(report.script)
            operation = f"{cause.operation}{f' ({place})' if place else ''}"
            yield _boxes([f"{cause.moved}: {cause.before}", operation, str(cause.after)])
        if remedy := remedy_line(cause, report):
            yield element("p", text(remedy), "aside")


def _boxes(boxes: Iterable[str]) -> str:
    return element("ol", "".join(element("li", text(box)) for box in boxes), "flow")
