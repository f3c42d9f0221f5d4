"""The tables at the bottom, one at a time, with tabs above them."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static

from ..inspector.capture.model import Capture
from ..inspector.linked import Linked, ProbePlace, StagePlace, equation_offset
from ..inspector.render.run_times import run_times
from ..inspector.report import Report
from ..parsers.source import Source
from .collectives_pane import CollectivesPane
from .device_rows import DEVICES, device_rows
from .entries import (
    LIVE,
    PROBLEMS,
    VALUES,
    VARIANCE,
    live_rows,
    problem_rows,
    problems_of,
    value_rows,
    variance_rows,
)
from .findings_listing import FINDINGS, finding_of, finding_rows
from .no_rows import no_rows
from .palette import axis_hues
from .row_table import RowTable
from .selected import Selected
from .shardings_pane import ShardingsPane
from .tab_strip import Tab, TabStrip
from .text_view import TextView

TABLES = {
    "collectives": ("Collectives", "c"),
    "findings": ("Findings", "f"),
    "shardings": ("Shardings", "h"),
    "values": ("Arguments & outputs", "a"),
    "variance": ("Variance", "v"),
    "devices": ("Each device", "e"),
    "live": ("Live", "l"),
    "problems": ("Problems", "p"),
    "log": ("Log", "o"),
}
"""What the tabs are called, and the keys that choose them."""


class TablesPane(Vertical):
    """Says what was selected in whichever table is shown."""

    ALLOW_MAXIMIZE = True

    capture: reactive[Capture] = reactive(Capture())
    report: reactive[Report | None] = reactive(None)
    linked: reactive[Linked | None] = reactive(None)
    chosen: reactive[str] = reactive("collectives")

    @dataclass
    class Picked(Message):
        """A row was selected; `opened` if more of it is wanted."""

        what: Selected
        opened: bool = False

    def compose(self) -> ComposeResult:
        yield TabStrip(id="tables-strip")
        with ContentSwitcher(initial="collectives"):
            yield CollectivesPane(id="collectives").data_bind(TablesPane.report, TablesPane.linked)
            yield RowTable(FINDINGS, id="findings")
            yield ShardingsPane(id="shardings").data_bind(TablesPane.report)
            yield RowTable(VALUES, id="values")
            yield RowTable(VARIANCE, id="variance")
            yield RowTable(DEVICES, id="devices")
            with Vertical(id="live"):
                yield Static(id="live-summary", classes="summary")
                yield RowTable(LIVE, id="live-table")
            yield RowTable(PROBLEMS, id="problems")
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
        self.query_one("#values", RowTable).show(value_rows(capture))
        self._show_problems()
        if capture.execution is not before.execution and capture.execution is not None:
            run = capture.execution
            words = run_times(run) or "ran"
            made_up = ("   on made-up inputs", "$warning") if run.seeded_inputs else ""
            self.query_one("#live-summary", Static).update(Content.assemble(words, made_up))
            self.query_one("#live-table", RowTable).show(live_rows(run.outputs))
        if (capture.stdout, capture.stderr) != (before.stdout, before.stderr):
            parts = [f"{name}\n{text.rstrip()}\n" for name, text in self._printed(capture) if text.strip()]
            self.query_one("#log", TextView).show(Source("log", "\n".join(parts).encode("utf-8", "replace")))
        self._explain_no_rows()
        self._count()

    def watch_report(self, report: Report | None) -> None:
        self._show_problems()
        if report is not None:
            hues = axis_hues(report.meshes)
            self.query_one("#findings", RowTable).show(finding_rows(report, hues))
            self.query_one("#variance", RowTable).show(variance_rows(report, hues))
            self.query_one("#devices", RowTable).show(device_rows(report, hues))
        self._explain_no_rows()
        self._count()

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
        capture, report = self.capture, self.report
        match table, key:
            case "collectives-table", _:
                return self.query_one(CollectivesPane).collective(key)
            case "findings", _ if report is not None:
                return finding_of(report, key)
            case "shardings-table", _:
                return self.query_one(ShardingsPane).value(key)
            case "values", ("in", int(number)):
                return capture.arguments[number]
            case "values", ("out", int(number)):
                return capture.outputs[number]
            case "live-table", int(number) if capture.execution is not None:
                return capture.execution.outputs[number]
            case "problems", int(number):
                return problems_of(capture, report)[number]
            case "variance", int(number) if report is not None:
                offset = equation_offset(report, report.variance[number].equation)
                return None if offset is None else StagePlace("jaxpr", offset)
            case "devices", int(number):
                return ProbePlace(number)
            case _:
                return None

    def _explain_no_rows(self) -> None:
        for table in self.query(RowTable):
            table.nothing = no_rows(table.id, self.capture, self.report)

    def _show_problems(self) -> None:
        self.query_one("#problems", RowTable).show(problem_rows(problems_of(self.capture, self.report)))

    @staticmethod
    def _printed(capture: Capture) -> tuple[tuple[str, str], ...]:
        return ("── standard output ──", capture.stdout), ("── standard error ──", capture.stderr)

    def _count(self) -> None:
        capture, report = self.capture, self.report
        run = capture.execution
        counts = {
            "collectives": self.query_one(CollectivesPane).count,
            "findings": 0 if report is None else len(report.findings),
            "shardings": self.query_one(ShardingsPane).count,
            "values": len(capture.arguments) + len(capture.outputs),
            "variance": 0 if report is None else len(report.variance),
            "devices": 0 if report is None else len(report.probes),
            "live": 0 if run is None else len(run.outputs),
            "problems": len(problems_of(capture, report)),
            "log": 0,
        }
        self.query_one(TabStrip).tabs = tuple(
            Tab(name, label, key, counts[name] or None, "failed" if name == "problems" and capture.failure else "ready")
            for name, (label, key) in TABLES.items()
        )
