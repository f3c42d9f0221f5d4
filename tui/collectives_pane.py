"""The collectives as a table: what runs, or what the user wrote."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from ..inspector.capture.model import STAGES
from ..inspector.render.table import Table
from ..inspector.render.tables.collectives import FOLLOWS, Key, collectives, key_of, programs
from ..inspector.report import Collective, Report
from ..inspector.report.places import Selection
from ..inspector.units import format_seconds
from .painted import axis_hues, columns_of, rows_of
from .row_table import RowTable


class CollectivesPane(Vertical):
    """The table of collectives: alike ones are one row until it is unfolded; the largest totals come first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "fold", "unfold"),
        Binding("F", "program", "filter", tooltip="list the collectives of the compiled program, or as written"),
    ]

    report: reactive[Report | None] = reactive(None)
    linked: reactive[Selection | None] = reactive(None)
    waiting: reactive[str] = reactive("")
    wanted: reactive[str] = reactive("")
    unfolded: reactive[frozenset[Key]] = reactive(frozenset())
    count = reactive(0)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[tuple[Collective, ...], ...] = ()
        self._row_of: dict[Key, Key] = {}

    def compose(self) -> ComposeResult:
        yield Static(id="collectives-summary", classes="summary")
        yield RowTable((), id="collectives-table")

    @property
    def table(self) -> RowTable:
        return self.query_one(RowTable)

    def collective(self, key: object) -> Collective | None:
        return next((row[0] for row in self._rows if key_of(row[0]) == key), None)

    def watch_linked(self) -> None:
        """Show which rows belong to what is selected, and put the cursor on one of them."""
        table, linked = self.table, self.linked
        keys = [] if linked is None else [key_of(collective) for collective in linked.collectives]
        rows = [self._row_of[key] for key in keys if key in self._row_of]
        table.linked = frozenset(rows)
        exact = None if linked is None or linked.collective is None else key_of(linked.collective)
        table.go_to_key([self._row_of[exact]] if exact is not None and exact in self._row_of else rows)

    def action_fold(self) -> None:
        number = self.table.cursor
        if not self._rows:
            return
        while number and self.table.rows[number].texts[0] == FOLLOWS:
            number -= 1
        key = self.table.rows[number].key
        if isinstance(key, tuple):
            self.unfolded ^= {key}

    def action_program(self) -> None:
        found = [] if self.report is None else programs(self.report)
        self.wanted = next((stage for stage in found if stage != self._program), "")
        self.table.move_to(self.table.cursor)

    @property
    def _program(self) -> str | None:
        found = [] if self.report is None else programs(self.report)
        return self.wanted if self.wanted in found else found[0] if found else None

    def _fill(self) -> None:
        report, program = self.report, self._program
        if report is None or (program is None and self.waiting):
            self.query_one("#collectives-summary", Static).update(f"{self.waiting} …" if self.waiting else "")
            return
        shown = collectives(report, program, self.unfolded)
        self._rows = tuple(row.value for row in shown.rows if isinstance(row.value, tuple))
        keys = [key_of(row[0]) for row in self._rows]
        self._row_of = {key_of(one): key for key, row in zip(keys, self._rows, strict=True) for one in row}
        self.query_one("#collectives-summary", Static).update(_summary(report, program, shown, self.waiting))
        self.table.columns = columns_of(shown)
        self.table.show(rows_of(shown, axis_hues(report.meshes), keys))
        self.count = len(self._row_of)
        self.watch_linked()

    watch_report = watch_wanted = watch_unfolded = watch_waiting = _fill


def _summary(report: Report, program: str | None, shown: Table, waiting: str) -> Content:
    others = [name for name in programs(report) if name != program]
    shows = (("F ", "$aside"), (f"show {STAGES[others[0]].program}", "$text-muted")) if others else ()
    hint = Content.assemble("   ", *shows)
    if not shown.rows:
        return Content.assemble(f"{shown.heading}: {f'{waiting} …' if waiting else shown.empty_text}", hint)
    more = (f"   {waiting} …", "$warning") if waiting else ""
    return Content.assemble(shown.heading, _cost(report, program), more, hint)


def _cost(report: Report, program: str | None) -> Content:
    """The roofline of the whole function, beside what runs."""
    cost = report.cost
    if cost is None or program != "hlo":
        return Content("")
    least, bound = ("at least ", "") if cost.at_least else ("", f", bound by {cost.bound}")
    return Content.assemble("   est. ", least, (format_seconds(cost.total), "bold"), f" per step{bound}")
