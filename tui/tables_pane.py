"""The overview and the tables, one at a time; the tabs above them are the screen's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static

from ..inspector.capture.model import Capture
from ..inspector.ir.program import Program
from ..inspector.render.table import Table
from ..inspector.report import Report
from ..inspector.report.places import Selection
from ..parsers.source import Source
from .collectives_pane import CollectivesPane
from .cursor_view import EntryView
from .entry_details import Selected
from .overview_pane import OverviewPane
from .painted import axis_hues, columns_of, rows_of
from .row_table import RowTable
from .shardings_pane import ShardingsPane
from .tab_strip import Tab
from .tab_tables import EMPTY, OWN, tab_tables
from .text_view import TextView

HEADED = ("live", "timeline", "passes")
"""The tables under their heading."""

PANES = (*OWN, *HEADED)
"""The tables that have more than rows."""

TABS = {
    "overview": ("Overview", "1"),
    **{name: (table.title, table.key) for name, table in EMPTY.items()},
    "log": ("Log", "0"),
}
"""Titles of the tabs, and their keys: a digit, or a letter for what few programs have."""


class TablesPane(Vertical):
    """Says what was selected in whichever table is shown."""

    ALLOW_MAXIMIZE = True

    capture: reactive[Capture] = reactive(Capture())
    report: reactive[Report | None] = reactive(None)
    tables: reactive[Mapping[str, Table]] = reactive({})
    """Tables of a report, as made in the background."""
    waiting: reactive[str] = reactive("")
    """Work in progress that may add more; until it ends, no table says that it is empty."""
    linked: reactive[Selection | None] = reactive(None)
    chosen: reactive[str] = reactive("overview")
    tabs: reactive[tuple[Tab, ...]] = reactive(())

    @dataclass
    class Picked(Message):
        """An entry was selected, or a row that is about nothing; `opened` if more of it is wanted."""

        what: Selected | None
        opened: bool = False

    def __init__(self) -> None:
        super().__init__()
        self._tables = dict(EMPTY)

    def compose(self) -> ComposeResult:
        with ContentSwitcher(initial="overview"):
            yield OverviewPane(id="overview").data_bind(TablesPane.report, TablesPane.waiting)
            yield CollectivesPane(id="collectives").data_bind(TablesPane.report, TablesPane.linked, TablesPane.waiting)
            yield ShardingsPane(id="shardings").data_bind(TablesPane.report, TablesPane.waiting)
            for name in HEADED:
                with Vertical(id=name, classes="headed"):
                    yield Static(id=f"{name}-summary", classes="summary")
                    yield RowTable((), id=f"{name}-table")
            for name in EMPTY:
                if name not in PANES:
                    yield RowTable((), id=name)
            yield TextView(id="log")

    def on_mount(self) -> None:
        self.watch(self.query_one(CollectivesPane), "count", self._count, init=False)
        self.watch(self.query_one(ShardingsPane), "count", self._count, init=False)

    @property
    def shown(self) -> Widget:
        pane = self.query_one(f"#{self.chosen}")
        return pane if isinstance(pane, EntryView | TextView) else pane.query_one(RowTable)

    def watch_chosen(self, chosen: str) -> None:
        self.query_one(ContentSwitcher).current = chosen

    def select(self) -> None:
        if isinstance(shown := self.shown, EntryView):
            shown.move_to(shown.cursor)
            if not shown.count:
                self.post_message(self.Picked(None))

    def go_to(self, name: str, what: Selected) -> None:
        """Put the cursor of a table on the row about something, if it is there; no message is posted."""
        table = self._tables[name]
        self._row_table(name).go_to_key([n for n, row in enumerate(table.rows) if table.selection(row.value) == what])

    def watch_capture(self, before: Capture, capture: Capture) -> None:
        self._show_tables(tab_tables(self._latest, early=True))
        if (capture.stdout, capture.stderr) != (before.stdout, before.stderr):
            self._show_log()
        self._count()

    def watch_tables(self, tables: Mapping[str, Table]) -> None:
        """Show them; what needs no analysis is shown of the capture already, if that has grown meanwhile."""
        if self.report is not None:
            is_latest = self.report.capture is self.capture
            self._show_tables({name: table for name, table in tables.items() if is_latest or not table.early})
        self._count()

    def watch_waiting(self) -> None:
        """Say why tables have no rows; not while some may still come."""
        for name, table in self._tables.items():
            if name not in OWN:
                self._row_table(name).nothing = f"{self.waiting} …" if self.waiting else table.empty_text
        self._show_log()

    def _show_log(self) -> None:
        parts = [f"{name}\n{text.rstrip()}\n" for name, text in self._printed(self.capture) if text.strip()]
        text = "\n".join(parts) or (f"{self.waiting} …" if self.waiting else "No output was recorded.")
        log, data = self.query_one("#log", TextView), text.encode("utf-8", "replace")
        if log.source.data != data:
            log.show(Source("log", data))

    def _show_tables(self, tables: Mapping[str, Table]) -> None:
        hues = axis_hues(() if self.report is None else self.report.meshes)
        for name, table in tables.items():
            self._tables[name] = table
            rows = self._row_table(name)
            rows.columns = columns_of(table)
            begins = not rows.rows
            rows.show(rows_of(table, hues))
            if begins:
                rows.go_to(table.first)
            if name in HEADED:
                self.query_one(f"#{name}-summary", Static).update(Content(table.heading))
        self.watch_waiting()

    @property
    def _latest(self) -> Report:
        """The report, or what the capture alone shows while there is none of it yet."""
        if self.report is None:
            return Report(Program(self.capture))
        if self.report.capture is self.capture:
            return self.report
        return replace(self.report, program=Program(self.capture), messages=())

    def _row_table(self, name: str) -> RowTable:
        return self.query_one(f"#{name}-table" if name in HEADED else f"#{name}", RowTable)

    @on(EntryView.Moved)
    def _moved(self, event: EntryView.Moved) -> None:
        event.stop()
        self.post_message(self.Picked(self._entry(event.table.id, event.key), isinstance(event, EntryView.Opened)))

    def _entry(self, table: str | None, key: object) -> Selected | None:
        match table, key:
            case "overview", _:
                return self.query_one(OverviewPane).entry(key)
            case "collectives-table", _:
                return self.query_one(CollectivesPane).collective(key)
            case "shardings-table", _:
                return self.query_one(ShardingsPane).value(key)
            case str(name), int(number):
                shown = self._tables[name.removesuffix("-table")]
                return cast("Selected | None", shown.selection(shown.rows[number].value))
        return None

    @staticmethod
    def _printed(capture: Capture) -> tuple[tuple[str, str], ...]:
        return ("── standard output ──", capture.stdout), ("── standard error ──", capture.stderr)

    def _count(self) -> None:
        counts = {name: len(t.rows) if t.total is None else t.total for name, t in self._tables.items()}
        counts["collectives"] = self.query_one(CollectivesPane).count
        counts["shardings"] = self.query_one(ShardingsPane).count
        failed = self.capture.failure is not None
        self.tabs = tuple(
            Tab(name, label, key, counts.get(name) or None, "failed" if name == "problems" and failed else "ready")
            for name, (label, key) in TABS.items()
            if key.isdigit() or counts[name]
        )
