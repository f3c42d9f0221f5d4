"""The collectives of several targets in one table, those of one cause in one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ..inspector.capture.model import PHASES, Capture
from ..inspector.render.collective_rows import cause_text, total_wire
from ..inspector.render.table import Cell
from ..inspector.render.table import Row as CellRow
from ..inspector.render.tables.comparison import NOT_COMPILED, collectives_by_cause
from ..inspector.report.comparison import CauseRow, Comparison, is_compiled
from ..inspector.units import format_bytes, format_seconds, plural
from .key_footer import KeyFooter
from .painted import Row, data
from .row_table import RowTable


class SideBySide(ModalScreen[None]):
    """Closed by the key that opened it, and by Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,T,q", "dismiss", "close", key_display="esc")]

    def __init__(self, compare: Callable[[], Comparison]) -> None:
        super().__init__()
        self._make = compare
        self._comparison: Comparison | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="side-by-side"):
            yield Static("comparing …", id="side-by-side-summary", classes="summary")
            yield RowTable((), id="side-by-side-table")
            yield Static(id="side-by-side-row", classes="summary")
            yield KeyFooter()

    def on_mount(self) -> None:
        self._compare()

    @work(thread=True)
    def _compare(self) -> None:
        self.app.call_from_thread(self._show, self._make())

    def _show(self, comparison: Comparison) -> None:
        table = self.query_one(RowTable)
        by_cause = collectives_by_cause(comparison)
        table.columns = by_cause.columns
        self._comparison = comparison
        table.show([each for number, row in enumerate(by_cause.rows) for each in _rows(number, row)])
        table.focus()
        self.query_one("#side-by-side-summary", Static).update(_summary(comparison))
        self._spell_out(0)

    @on(RowTable.Moved)
    def _moved(self, event: RowTable.Moved) -> None:
        if isinstance(event.key, tuple):
            self._spell_out(event.key[0])

    def _spell_out(self, number: int) -> None:
        if self._comparison is not None and number < len(self._comparison.rows):
            row = self._comparison.rows[number]
            self.query_one("#side-by-side-row", Static).update(_whole(self._comparison, row))


def _whole(comparison: Comparison, row: CauseRow) -> Content:
    each = zip(comparison.targets, comparison.reports, row.cells, strict=True)
    lines = (
        Content.assemble(
            data(target, "bold"),
            data(f" {'; '.join(cause_text(cell)) or ('nothing' if is_compiled(report) else NOT_COMPILED)}"),
        )
        for target, report, cell in each
    )
    return Content("\n").join(lines)


def _rows(number: int, row: CellRow) -> Iterator[Row]:
    lines = zip_longest(*(_lines(cell) for cell in row.cells), fillvalue="")
    for line, cells in enumerate(lines):
        yield Row((number, line), cells)


def _lines(cell: Cell) -> Sequence[Cell]:
    return cell.split("\n") if isinstance(cell, str) else (cell,)


def _state(capture: Capture) -> str:
    if capture.failure is not None:
        why = next(iter(capture.failure.message.splitlines()), "")
        return f"stopped while {PHASES[capture.failure.phase]}: {why}"
    return f"{PHASES[capture.progress.phase]} …" if capture.progress is not None else NOT_COMPILED


def _summary(comparison: Comparison) -> Content:
    parts = []
    for target, report in zip(comparison.targets, comparison.reports, strict=True):
        if not is_compiled(report):
            parts.append(Content.assemble(data(target, "bold"), data(f" {_state(report.capture)}")))
            continue
        found = [each for each in report.collectives if each.stage == "hlo"]
        said = [f"{plural(len(found), 'collective')}, {format_bytes(total_wire(found))}"]
        if report.cost is not None:
            said.append(f"{format_seconds(report.cost.total)}, bound by {report.cost.bound}")
        parts.append(Content.assemble(data(target, "bold"), data(f" {'; '.join(said)}")))
    return Content("\n").join(parts)
