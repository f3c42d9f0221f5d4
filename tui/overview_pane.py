"""The first view: what a step takes, what matters, what is communicated, and what is in order.

It has what the text report says by default, in the order of what costs most.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from ..inspector.capture.model import PHASES, Failure
from ..inspector.render.collective_rows import total_wire
from ..inspector.render.finding_facts import fixes_shown, notes_text, verdict
from ..inspector.render.overview import attention, in_order, nothing_sent, resources_text
from ..inspector.render.table import Row, Table
from ..inspector.render.tables.captured import worst_problems
from ..inspector.render.tables.communication import axes, communication
from ..inspector.render.tables.findings import matters
from ..inspector.report import Finding, Report, StrategyTotal
from ..parsers.record import Record
from .cursor_view import CURSOR, EntryView
from .entry_details import Selected
from .painted import axis_hues, columns_of, content, data, folded, rows_of, title
from .row_table import grid_of

INDENT = 2
"""Blank columns before what belongs to the line above."""

MAX_MESSAGE_LINES = 3
"""Lines of a finding's message; the pane beside has all of it."""


class Part(Record, frozen=True):
    """Lines, and what of the report they are `about`; None for what cannot be selected."""

    lines: tuple[Content, ...]
    about: Selected | None = None


def overview(report: Report, waiting: str, width: int) -> Iterator[Part]:
    """The parts in `width` columns. What is not known while something is `waiting` is not denied."""
    if resources := resources_text(report):
        yield Part(tuple(folded(data(resources), width)))
    yield from _failure(report, width)
    yield from _in_full(matters(report), report, width)
    yield from _grid(axes(report), report, width)
    yield from _communication(report, waiting, width)
    yield from _in_full(worst_problems(report), report, width)
    yield Part((Content(""),))
    hues = axis_hues(report.meshes)
    for cell in attention(report):
        yield Part(tuple(folded(content(cell, hues), width)))
    if waiting:
        yield Part((Content.styled(f"{waiting} …", "$warning"),))
    elif order := in_order(report):
        yield Part(tuple(folded(Content.assemble(("ok  ", "$success"), data(order)), width)))
    if notes := notes_text(report):
        yield Part(tuple(folded(data(notes, "$aside"), width)), _first_note(report))


def _failure(report: Report, width: int) -> Iterator[Part]:
    why, found = report.capture.failure, report.explanation
    if why is None:
        return
    yield _heading(f"Stopped while {PHASES[why.phase]}", "bold $error")
    yield Part(tuple(_failed(why, width)), why)
    if found is None:
        return
    yield _heading("Why it fails")
    lines = folded(data(found.title, "bold"), width)
    for number, step in enumerate(found.steps, 1):
        lines += _indented(data(f"{number}. {step.what}   {step.source.text()}".rstrip()), width)
    for fix in fixes_shown(found):
        verdict_style = "$success" if fix.helps else "$warning"
        lines += _indented(Content.assemble(data(f"{verdict(fix)}: ", verdict_style), data(fix.title)), width)
    yield Part(tuple(lines), why)


def _failed(why: Failure, width: int) -> Iterator[Content]:
    yield from folded(data(why.message, "bold"), width)
    if why.hint:
        yield from folded(Content.assemble(("hint: ", "bold"), data(why.hint)), width)


def _communication(report: Report, waiting: str, width: int) -> Iterator[Part]:
    table = communication(report)
    if not table.rows:
        if not waiting and (sent := nothing_sent(report)):
            yield Part((Content(""), *folded(data(sent), width)))
        return
    yield from _grid(table, report, width)


def _grid(table: Table, report: Report, width: int) -> Iterator[Part]:
    if not table.rows:
        return
    hues = axis_hues(report.meshes)
    yield _heading(table.heading)
    columns = columns_of(table)
    rows = rows_of(table, hues)
    grid = grid_of(columns, [row.texts for row in rows])
    head = [Content.styled(column.title, "$aside") for column in columns]
    yield Part((_moved(grid.line(head, width - INDENT)),))
    for row, drawn in zip(table.rows, rows, strict=True):
        yield Part((_moved(grid.line(drawn.cells, width - INDENT)),), _largest(row.value))


def _in_full(table: Table, report: Report, width: int) -> Iterator[Part]:
    if not table.rows:
        return
    yield _heading(table.heading)
    for row in table.rows[: table.most]:
        yield Part(tuple(_row_in_full(table, row, report, width)), _first(row.value))
    if table.most is not None and (more := len(table.rows) - table.most) > 0:
        yield Part((_moved(Content.styled(f"and {more} more", "$aside")),))


def _row_in_full(table: Table, row: Row, report: Report, width: int) -> Iterator[Content]:
    hues = axis_hues(report.meshes)
    cells = (content(cell, hues) for cell in row.cells)
    yield from map(_moved, folded(Content("  ").join(cell for cell in cells if cell.plain), width - INDENT))
    for detail in table.details(row.value):
        if detail.text and not detail.is_code:
            label = f"{detail.label}: " if detail.label else ""
            lines = _indented(Content.assemble((label, "$aside"), data(detail.text)), width - INDENT)
            yield from map(_moved, lines[:MAX_MESSAGE_LINES])


def _heading(text: str, style: str = "") -> Part:
    return Part((Content(""), Content.styled(text, style) if style else title(text)))


def _indented(line: Content, width: int) -> list[Content]:
    return [_moved(each) for each in folded(line, width - INDENT)]


def _moved(line: Content) -> Content:
    return line.pad_left(INDENT)


def _largest(value: object) -> Selected | None:
    if isinstance(value, StrategyTotal):
        return max(value.collectives, key=lambda each: total_wire((each,)) or 0)
    return None


def _first(value: object) -> Selected | None:
    """The entry that a row is about, the first of those that are alike."""
    return value[0] if isinstance(value, tuple) else value  # type: ignore[return-value]


def _first_note(report: Report) -> Finding | None:
    return next((each for each in report.findings if each.severity == "info"), None)


def selectable(parts: Sequence[Part]) -> list[tuple[int, Part]]:
    """The parts that can be selected, with the number of the line at which each begins."""
    found, line = [], 0
    for part in parts:
        if part.about is not None:
            found.append((line, part))
        line += len(part.lines)
    return found


SIGNS = 2
"""Columns to the left of a line, for the cursor."""


class OverviewPane(EntryView):
    """Lines, some of which are about something that can be selected; the cursor goes from one of these to the next."""

    report: reactive[Report | None] = reactive(None)
    waiting: reactive[str] = reactive("")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._parts: tuple[Part, ...] = ()
        self._entries: list[tuple[int, Part]] = []
        self._lines: tuple[tuple[Content, int | None], ...] = ()

    def entry(self, key: object) -> Selected | None:
        return self._entries[key][1].about if isinstance(key, int) and key < len(self._entries) else None

    @property
    def first(self) -> Selected | None:
        return self.entry(0)

    @property
    def keys(self) -> list[Hashable]:
        return list(range(len(self._entries)))

    def fill(self) -> None:
        """Write it anew, for the space that there is; the cursor stays on what it was on."""
        width = max(self.scrollable_content_region.width - SIGNS, 20)
        before = self.entry(self.cursor)
        if self.report is None:
            self._parts = (Part(tuple(Content.styled(f"{self.waiting} …", "$warning").split("\n"))),)
        else:
            self._parts = tuple(overview(self.report, self.waiting, width))
        self._entries = selectable(self._parts)
        numbers = {first: number for number, (first, _) in enumerate(self._entries)}
        lines: list[tuple[Content, int | None]] = []
        for part in self._parts:
            number = numbers.get(len(lines)) if part.about is not None else None
            lines += [(line, number) for line in part.lines]
        self._lines = tuple(lines)
        self.virtual_size = Size(width + SIGNS, len(lines))
        abouts = [part.about for _, part in self._entries]
        if before is not None and before in abouts:
            self.go_to(abouts.index(before))
        else:
            self.cursor = self.validate_cursor(self.cursor)
        self.refresh()

    watch_report = watch_waiting = on_resize = fill

    def go_to(self, position: int) -> None:
        self.cursor = position
        if self._entries:
            first, part = self._entries[self.cursor]
            # What stands above the first entry, and below the last, has no cursor that could bring it into view.
            top = 0 if self.cursor == 0 else first
            last = self.cursor == len(self._entries) - 1
            self.reveal(top, len(self._lines) - 1 if last else first + len(part.lines) - 1)

    def find(self, needle: str) -> tuple[int, ...]:
        texts = ("\n".join(line.plain for line in part.lines).lower() for _, part in self._entries)
        return tuple(number for number, text in enumerate(texts) if needle.lower() in text)

    def on_click(self, event: events.Click) -> None:
        line = event.y + self.scroll_offset.y
        if event.button == 1 and line < len(self._lines) and (number := self._lines[line][1]) is not None:
            self.move_to(number)
            if event.chain == 2:
                self.action_open()

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        if number >= len(self._lines):
            return self.blank()
        line, entry = self._lines[number]
        here = entry is not None and entry == self.cursor
        begins = here and (number == 0 or self._lines[number - 1][1] != entry)
        sign = Content.styled(f"{self.sign if begins else '':<{SIGNS}}", "$primary")
        return self.drawn(sign + line, CURSOR if here else "")
