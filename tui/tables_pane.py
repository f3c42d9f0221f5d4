"""The tables at the bottom, one at a time, with tabs above them."""

from __future__ import annotations

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
from ..inspector.render.tables import TABLES
from ..inspector.report import Report
from ..inspector.selection.selection import Selection
from ..parsers.source import Source
from .collectives_pane import CollectivesPane
from .entry_details import Selected
from .painted import columns_of, rows_of
from .palette import axis_hues
from .row_table import RowTable
from .shardings_pane import ShardingsPane
from .tab_strip import Tab, TabStrip
from .text_view import TextView

NOTHING = Report(Program(Capture()))

PANES = ("collectives", "shardings", "live")
"""The tables that have more than rows."""

ON_SCREEN = {table.id: (make, table) for make in TABLES if (table := make(NOTHING)).key}

TABS = {name: (table.title, table.key) for name, (_, table) in ON_SCREEN.items()} | {"log": ("Log", "o")}
"""What the tabs are called, and the keys that choose them."""


class TablesPane(Vertical):
    """Says what was selected in whichever table is shown."""

    ALLOW_MAXIMIZE = True

    capture: reactive[Capture] = reactive(Capture())
    report: reactive[Report | None] = reactive(None)
    linked: reactive[Selection | None] = reactive(None)
    chosen: reactive[str] = reactive("collectives")

    @dataclass
    class Picked(Message):
        """A row was selected; `opened` if more of it is wanted."""

        what: Selected
        opened: bool = False

    def __init__(self) -> None:
        super().__init__()
        self._tables = {name: table for name, (_, table) in ON_SCREEN.items()}

    def compose(self) -> ComposeResult:
        yield TabStrip(id="tables-strip")
        with ContentSwitcher(initial="collectives"):
            yield CollectivesPane(id="collectives").data_bind(TablesPane.report, TablesPane.linked)
            yield ShardingsPane(id="shardings").data_bind(TablesPane.report)
            with Vertical(id="live"):
                yield Static(id="live-summary", classes="summary")
                yield RowTable((), id="live-table")
            for name in ON_SCREEN:
                if name not in PANES:
                    yield RowTable((), id=name)
            yield TextView(id="log")

    def on_mount(self) -> None:
        self.watch(self.query_one(CollectivesPane), "count", self._count, init=False)
        self.watch(self.query_one(ShardingsPane), "count", self._count, init=False)

    @property
    def shown(self) -> Widget:
        """The table, or the text, that takes the keys."""
        pane = self.query_one(f"#{self.chosen}")
        return pane if isinstance(pane, RowTable | TextView) else pane.query_one(RowTable)

    def watch_chosen(self, chosen: str) -> None:
        self.query_one(ContentSwitcher).current = chosen
        self.query_one(TabStrip).chosen = chosen
        if chosen == "findings":  # which one has come to see, and not to go on looking at something else
            findings = self.query_one("#findings", RowTable)
            findings.move_to(findings.cursor)

    def watch_capture(self, before: Capture, capture: Capture) -> None:
        self._show_tables(early=True)
        if (capture.stdout, capture.stderr) != (before.stdout, before.stderr):
            parts = [f"{name}\n{text.rstrip()}\n" for name, text in self._printed(capture) if text.strip()]
            self.query_one("#log", TextView).show(Source("log", "\n".join(parts).encode("utf-8", "replace")))
        self._explain_no_rows()
        self._count()

    def watch_report(self, report: Report | None) -> None:
        if report is not None:
            self._show_tables(early=False)
        self._explain_no_rows()
        self._count()

    def _show_tables(self, *, early: bool) -> None:
        """Fill the tables of what is known; only the early ones while the capture is not analysed."""
        report = self._latest
        for name, (make, table) in ON_SCREEN.items():
            if name not in ("collectives", "shardings") and (table.early or not early):
                self._tables[name] = shown = make(report)
                rows = self._row_table(name)
                rows.columns = columns_of(shown)
                rows.show(rows_of(shown, axis_hues(report.meshes)))
        self.query_one("#live-summary", Static).update(Content(self._tables["live"].heading))

    @property
    def _latest(self) -> Report:
        """The report, or what the capture alone tells while there is none of it yet."""
        if self.report is None:
            return Report(Program(self.capture))
        if self.report.capture is self.capture:
            return self.report
        return replace(self.report, program=Program(self.capture), messages=())

    def _row_table(self, name: str) -> RowTable:
        return self.query_one("#live-table" if name == "live" else f"#{name}", RowTable)

    @on(TabStrip.Picked)
    def _choose(self, event: TabStrip.Picked) -> None:
        event.stop()
        self.chosen = event.tab

    @on(RowTable.Moved)
    def _moved(self, event: RowTable.Moved) -> None:
        event.stop()
        what = self._entry(event.table.id, event.key)
        if what is not None:
            self.post_message(self.Picked(what, isinstance(event, RowTable.Opened)))

    def _entry(self, table: str | None, key: object) -> Selected | None:
        """What a row is about."""
        match table, key:
            case "collectives-table", _:
                return self.query_one(CollectivesPane).collective(key)
            case "shardings-table", _:
                return self.query_one(ShardingsPane).value(key)
            case str(name), int(number):
                shown = self._tables[name.removesuffix("-table")]
                return cast("Selected | None", shown.selection(shown.rows[number].value))
        return None

    def _explain_no_rows(self) -> None:
        """Say why tables have no rows; not while some may still come, or where the line above says it."""
        for name, table in self._tables.items():
            if name not in ("collectives", "shardings"):
                waits = self.report is None or self.capture.progress is not None
                self._row_table(name).nothing = "" if waits else table.empty_text

    @staticmethod
    def _printed(capture: Capture) -> tuple[tuple[str, str], ...]:
        return ("── standard output ──", capture.stdout), ("── standard error ──", capture.stderr)

    def _count(self) -> None:
        counts = {name: len(t.rows) if t.total is None else t.total for name, t in self._tables.items()}
        counts["collectives"] = self.query_one(CollectivesPane).count
        counts["shardings"] = self.query_one(ShardingsPane).count
        failed = self.capture.failure is not None
        self.query_one(TabStrip).tabs = tuple(
            Tab(name, label, key, counts.get(name) or None, "failed" if name == "problems" and failed else "ready")
            for name, (label, key) in TABS.items()
        )
