"""The collectives of several targets in one table, those of one cause in one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ..inspector.capture.model import Capture
from ..inspector.compare import CauseRow, Comparison, compare
from ..inspector.pipeline import inspect
from ..inspector.render.collective_rows import SHORT_PASS, cause_text
from ..inspector.units import format_seconds
from .columns import Column
from .pieces import data
from .row_table import Row, RowTable


class SideBySide(ModalScreen[None]):
    """Closed by the key that opened it, and by Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,T,q", "dismiss", "close")]

    def __init__(self, captures: Sequence[Capture]) -> None:
        super().__init__()
        self._captures = captures

    def compose(self) -> ComposeResult:
        with Vertical(id="side-by-side"):
            yield Static("comparing …", id="side-by-side-summary", classes="summary")
            yield RowTable((), id="side-by-side-table")

    def on_mount(self) -> None:
        self._compare()

    @work(thread=True)
    def _compare(self) -> None:
        targets = [_target(capture) for capture in self._captures]
        comparison = compare(targets, list(map(inspect, self._captures)))
        self.app.call_from_thread(self._show, comparison)

    def _show(self, comparison: Comparison) -> None:
        table = self.query_one(RowTable)
        wide = [Column(target, 12, 5) for target in comparison.targets]
        table.columns = (Column("from", 12, 9), Column("pass", 4, 3), Column("axes", 5, 8), *wide)
        table.show([Row(number, _cells(row)) for number, row in enumerate(comparison.rows)])
        table.focus()
        self.query_one(Static).update(_summary(comparison))


def _target(capture: Capture) -> str:
    return capture.subject.target if capture.subject is not None else "not captured yet"


def _cells(row: CauseRow) -> tuple[Content, ...]:
    cause = row.cause
    place = data(cause.source) if cause.source else Content.styled("combined, or not known", "$aside")
    cells = (data(", ".join(cause_text(cell))) if cell else Content.styled("–", "$aside") for cell in row.cells)
    return (place, data(SHORT_PASS[cause.direction]), data(cause.axes), *cells)


def _summary(comparison: Comparison) -> Content:
    parts = []
    for target, report in zip(comparison.targets, comparison.reports, strict=True):
        cost = report.cost
        time = "" if cost is None else f" {format_seconds(cost.total)}, bound by {cost.bound}"
        failed = " stopped" if report.capture.failure is not None else ""
        parts.append(Content.assemble(data(target, "bold"), data(f"{time}{failed}")))
    return Content("   ").join(parts)
