"""The one screen: panes over one capture, and the selection that links them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widgets import Footer

from ..inspector.capture.model import STAGES, Capture
from ..inspector.findings.policy import EVERYTHING, Policy
from ..inspector.report import Collective, Finding, FindingPlace, PlacedMessage, Report, ShardedValue
from ..inspector.selection.selection import Place, ProbePlace, Selection, SourceLine, StagePlace
from .analyst import Analyst, View
from .collectives_pane import CollectivesPane
from .entry_details import Selected
from .feed import Feed
from .help import Help
from .inspect_pane import InspectPane
from .palette import axis_hues
from .prompt import Prompt, PromptedScreen
from .row_table import RowTable
from .search import Searchable
from .shardings_pane import ShardingsPane
from .source_pane import SourcePane
from .stage_pane import StagePane
from .tab_strip import TabStrip
from .tables_pane import TABS, TablesPane
from .text_view import TextView
from .title_bar import TitleBar


class MainScreen(PromptedScreen):
    """Source, stage and details above, tables below. Whatever is selected in one pane, the others show what belongs
    to it; long work is done by the analyst, and what it answers is shown if it is still wanted."""

    # Textual does not declare these as class variables.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-normal"), (170, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-tall")]  # noqa: RUF012

    PANES = (SourcePane, StagePane, InspectPane, TablesPane)

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"stage('{name}')", name, show=False) for number, name in enumerate(STAGES, 1)),
        Binding("0", "source", "source", tooltip="the source"),
        *(Binding(key, f"table('{name}')", label, show=False) for name, (label, key) in TABS.items()),
        PromptedScreen.ZOOM,
        Binding("s", "save", "save"),
        *PromptedScreen.LAST,
    ]

    capture: reactive[Capture] = reactive(Capture())
    report: reactive[Report | None] = reactive(None)
    stage = reactive("")
    selected: reactive[Selected | None] = reactive(None)
    linked: reactive[Selection | None] = reactive(None)

    def __init__(
        self, feed: Feed, policy: Policy = EVERYTHING, improve: Callable[[Report], Report] | None = None
    ) -> None:
        super().__init__()
        self._feed = feed
        self._program = feed.latest
        self._analyst = Analyst(self.post_message, policy, improve)
        self._stage_chosen = False
        self._place_chosen = False
        self._place_to_show: StagePlace | None = None

    def compose(self) -> ComposeResult:
        yield TitleBar().data_bind(MainScreen.capture, MainScreen.report)
        with Horizontal(id="upper"):
            yield SourcePane()
            yield StagePane().data_bind(MainScreen.capture, MainScreen.stage, MainScreen.linked)
            yield InspectPane().data_bind(MainScreen.report, MainScreen.selected, MainScreen.linked)
        yield TablesPane().data_bind(MainScreen.capture, MainScreen.report, MainScreen.linked)
        yield Prompt()
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._analyst.start()
        self._feed.start(self.post_message)
        self.query_one("#collectives-table").focus()

    def on_unmount(self) -> None:
        self._analyst.stop()

    # What arrives

    @on(Feed.Arrived)
    def _arrived(self) -> None:
        before, self._program = self.capture, self._feed.take()
        self.capture = self._program.capture
        if self._program.script is not None and before.script_text is None:
            self.query_one(SourcePane).show(self._program.script, captured=True)
        if not self._stage_chosen and self.capture.stages:
            self.stage = self.capture.stages[-1].name
        if _analysed(self.capture) != _analysed(before) or self.report is None:
            self.query_one(TitleBar).analysing = True
            self._analyst.report(self._program)

    @on(Analyst.Reported)
    def _reported(self, event: Analyst.Reported) -> None:
        self.report = event.report
        is_last = event.whole and _analysed(event.report.capture) == _analysed(self.capture)
        self.query_one(TitleBar).analysing = not is_last
        self.query_one(SourcePane).mark(event.report.collectives, self._hues)
        if isinstance(self.selected, Finding):
            before = self.selected
            same = (f for f in event.report.findings if (f.rule, f.place) == (before.rule, before.place))
            self.selected = next(same, before)
        if not self._place_chosen and event.report.explanation is not None:
            self.selected = event.report.capture.failure
        elif not self._place_chosen and (first := self.query_one(CollectivesPane).first) is not None:
            self.selected = first
        self._ask()

    @on(Analyst.Viewed)
    def _viewed(self, event: Analyst.Viewed) -> None:
        view = event.view
        if view.stage == self.stage:
            pane = self.query_one(StagePane)
            pane.show(view.stage, view.text)
            pane.mark(view.collectives, self._hues)
            if view.place == self.selected or view.place is None:
                if isinstance(view.place, StagePlace):
                    self.query_one(InspectPane).line = view.line
                self.linked = view.linked
                self._show_source(view)
                if view.place is not None and view.place == self._place_to_show and view.place.stage == self.stage:
                    pane.view.go_to(pane.view.index.line_at(view.place.offset))

    @on(Analyst.Asked)
    def _asked(self, event: Analyst.Asked) -> None:
        self._analyst.ask(event)

    @on(Analyst.Broke)
    def _broke(self, event: Analyst.Broke) -> None:
        self.query_one(TitleBar).analysing = False
        words = f"{event.what}\nThe texts are still there."
        self.notify(words, title="an analysis failed", severity="error", markup=False)

    # What is selected

    @on(TextView.Moved, "#source-text")
    def _source_moved(self, event: TextView.Moved) -> None:
        self._select(SourceLine(event.view.source.name, event.line + 1))

    @on(TextView.Moved, "#stage-text")
    def _stage_moved(self, event: TextView.Moved) -> None:
        self._place_to_show = None
        self._select(StagePlace(self.stage, _first_byte(event.view, event.line)))

    @on(TablesPane.Picked)
    def _picked(self, event: TablesPane.Picked) -> None:
        self._place_to_show = event.what if isinstance(event.what, StagePlace) else None
        self._select(event.what)
        if event.opened:
            match event.what:
                case Collective(stage=stage) | StagePlace(stage=stage) | ShardedValue(stage=stage):
                    self.action_stage(stage)
                case ProbePlace():
                    self.action_stage("jaxpr")
                case Finding(place=FindingPlace(stage=str(stage))):
                    self.action_stage(stage)
                case Finding():
                    self.action_source()
                case PlacedMessage(source=source) if source.frame is not None:
                    self._select(SourceLine(source.frame.file, source.frame.line))
                    self.action_source()

    @on(TabStrip.Picked, "#stages")
    def _stage_picked(self, event: TabStrip.Picked) -> None:
        self.action_stage(event.tab)

    def watch_selected(self, selected: Selected | None) -> None:
        self.query_one(InspectPane).line = self._line_of(selected)

    def watch_stage(self, stage: str) -> None:
        found = self.capture.stage(stage)
        if found is not None and found.dialect != "jaxpr":
            self.query_one(StagePane).show(stage, found.source)
        self._ask()

    def on_descendant_focus(self) -> None:
        """On a narrow screen, the source takes the place of the stage while it has the focus."""
        if self.query_one(SourcePane).has_focus_within:
            self.add_class("-source")
        elif self.query_one(StagePane).has_focus_within:
            self.remove_class("-source")

    def _select(self, what: Selected) -> None:
        self._place_chosen = True
        self.selected = what
        if isinstance(what, Place):
            self._ask()
        else:
            self.linked = None

    def _ask(self) -> None:
        """Ask the analyst for what is wanted now."""
        report, selected = self.report, self.selected
        if report is not None and report.capture.stage(self.stage) is not None:
            self._analyst.view(report, self.stage, selected if isinstance(selected, Place) else None)

    def _line_of(self, selected: Selected | None) -> str:
        """The text at a place; that of a stage comes with its view."""
        match selected:
            case SourceLine(line=line):
                return self.query_one(SourcePane).view.text_of(line - 1)
            case Collective(stage=name, span=span) if (stage := self.capture.stage(name)) is not None:
                return stage.source.text(span)
            case _:
                return ""

    # What is shown

    def _show_source(self, view: View) -> None:
        if view.linked is None:
            return
        pane = self.query_one(SourcePane)
        if view.source is not None and view.source is not pane.view.source:
            pane.show(view.source, captured=view.source.captured)
        here = [frame.line for frame in view.linked.stack if pane.shows(frame.file)]
        moves = here and not isinstance(view.place, SourceLine)
        pane.link(frozenset(here), here[0] if moves else None)

    @property
    def _hues(self) -> dict[str, str]:
        return dict(axis_hues(self.report.meshes)) if self.report is not None else {}

    # What the keys do

    def action_stage(self, name: str) -> None:
        """Show a stage."""
        self._stage_chosen = True
        self.remove_class("-source")
        self.stage = name
        if self.query_one(StagePane).view.display:
            self.query_one(StagePane).view.focus()

    def action_source(self) -> None:
        """Go to the source."""
        self.add_class("-source")
        self.query_one(SourcePane).view.focus()

    def action_table(self, name: str) -> None:
        """Show a table."""
        pane = self.query_one(TablesPane)
        pane.chosen = name
        pane.shown.focus()

    def action_show_frame(self, number: int) -> None:
        """Show the file and the line of one frame of the selected stack."""
        stack = self.linked.stack if self.linked is not None else ()
        if number < len(stack) and (source := self._program.file(stack[number].file)) is not None:
            pane = self.query_one(SourcePane)
            pane.show(source, captured=source.captured)
            pane.link(frozenset({stack[number].line}), stack[number].line)
        else:
            self.notify("The file is not there.", severity="warning")

    def action_help(self) -> None:
        """Show what the keys do."""
        sections = (
            ("everywhere", (*PromptedScreen.BINDINGS, *MainScreen.BINDINGS)),
            ("in a text", TextView.BINDINGS),
            ("in a table", RowTable.BINDINGS),
            ("in the collectives", CollectivesPane.BINDINGS),
            ("in what is selected", InspectPane.BINDINGS),
            ("in the shardings", ShardingsPane.BINDINGS),
        )
        self.app.push_screen(Help(sections))

    def action_save(self) -> None:
        """Ask for a file to keep the capture in."""
        self.query_one(Prompt).save(self.focused_pane, self.capture)

    @property
    def usual_pane(self) -> Searchable:
        return self.query_one(StagePane).view


def _analysed(capture: Capture) -> Capture:
    """A capture without what no report depends on."""
    return replace(capture, progress=None, stdout="", stderr="", timings={}, complete=False)


def _first_byte(view: TextView, line: int) -> int:
    """Where the first word of a line begins."""
    start, end = view.index.span(line)
    text = view.source.data[start:end]
    return start + len(text) - len(text.lstrip())
