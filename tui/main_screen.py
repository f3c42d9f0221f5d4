"""The one screen: panes over one capture, and the selection that links them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.reactive import reactive
from textual.widget import Widget

from ..inspector.capture.model import Capture
from ..inspector.render.table import Table
from ..inspector.report.analyses import Analyses
from ..inspector.report.places import StagePlace
from .analyst import Analyst, Improve
from .arrivals import analysed, explained_lines, failing_line, merged, same_entry, waiting_for
from .edit_loop import EditLoop
from .edit_screen import EditScreen
from .feed import Feed
from .inspect_pane import InspectPane
from .key_footer import KeyFooter
from .overview_pane import OverviewPane
from .painted import axis_hues
from .prompt import Prompt, PromptedScreen
from .search import Searchable
from .selection_screen import SelectionScreen
from .stage_pane import SourcePane, StagePane
from .tab_strip import TabStrip
from .tables_pane import TablesPane
from .title_bar import TitleBar


class MainScreen(SelectionScreen):
    """Overview and tables above with what is selected beside them, code below. Whatever is selected in one pane, the
    others show what belongs to it; long work is done by the analyst, and what it answers is shown if it is still
    wanted."""

    # Textual does not declare these as class variables.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-normal"), (170, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-tall")]  # noqa: RUF012

    BINDINGS: ClassVar[list[BindingType]] = [
        PromptedScreen.ZOOM,
        Binding("s", "save", "save", show=False),
        *PromptedScreen.LAST,
    ]

    waiting: reactive[str] = reactive(waiting_for(Capture(), None))
    tables: reactive[Mapping[str, Table]] = reactive({})

    def __init__(
        self,
        feed: Feed,
        analyses: Analyses,
        improve: Improve | None = None,
        loop: EditLoop | None = None,
    ) -> None:
        super().__init__(feed, analyses, loop)
        self.analyst = Analyst(self.post_message, analyses, improve)
        self._reported: Capture | None = None
        self._improving = ""

    def compose(self) -> ComposeResult:
        yield TitleBar(self.requested).data_bind(
            MainScreen.waiting,
            capture=EditScreen.capture,
            report=EditScreen.report,
            changed=EditScreen.changed,
            failed=EditScreen.failed,
        )
        yield TabStrip(id="tabs")
        with Container(id="upper"):
            yield TablesPane().data_bind(
                MainScreen.waiting,
                MainScreen.tables,
                capture=EditScreen.capture,
                report=EditScreen.report,
                linked=EditScreen.linked,
            )
            yield InspectPane().data_bind(
                MainScreen.waiting,
                report=EditScreen.report,
                selected=EditScreen.selected,
                linked=EditScreen.linked,
                frame_number=SelectionScreen.frame_number,
            )
        with Container(id="lower"):
            yield SourcePane()
            yield StagePane().data_bind(MainScreen.stage, capture=EditScreen.capture, linked=EditScreen.linked)
        yield Prompt()
        yield KeyFooter()

    def on_mount(self) -> None:
        self.analyst.start()
        self._feed.start(self.post_message)
        tables = self.query_one(TablesPane)
        self.watch(tables, "tabs", self._show_tabs)
        self.watch(tables, "chosen", self._show_tabs)
        self.query_one(OverviewPane).focus()

    def on_unmount(self) -> None:
        self.analyst.stop()

    # What arrives

    @on(Feed.Arrived)
    def _arrived(self) -> None:
        before, self.program, self._improving = self.capture, self._feed.take(), ""
        if self.took_another_run() and self.program.capture.failure is not None:
            self.place_chosen = False
        self.capture = self.program.capture
        if self.program.script is not None and before.script_text is not self.capture.script_text:
            self.query_one(SourcePane).show(self.program.script, captured=True)
        if (failing := failing_line(self.capture)) is not None and before.failure is None:
            self.query_one(SourcePane).link(frozenset({failing.line}), failing.line)
        if not self.stage_chosen and self.capture.stages:
            self.stage = self.capture.stages[-1].name
        ended = self.capture.complete and not before.complete and self.analyst.improves
        if analysed(self.capture) != analysed(before) or self.report is None or ended:
            self.analyst.report(self.program)
        self.settle()

    def settle(self) -> None:
        self.waiting = self.rerunning or waiting_for(self.capture, self._reported) or self._improving

    @on(Analyst.Improving)
    def _is_improving(self, event: Analyst.Improving) -> None:
        if event.capture is self.capture:
            self._improving = event.what
            self.settle()

    @on(Analyst.Reported)
    def _take_report(self, event: Analyst.Reported) -> None:
        if event.whole:
            self._reported = event.report.capture
        self.report = merged(self.report, event.report, whole=event.whole)
        if event.whole:
            self.tables = event.tables
        self.settle()
        if event.whole:
            self.tell_what_changed(self.report)
        self.query_one(SourcePane).mark(self.report.collectives, self._hues)
        self.selected = same_entry(self.selected, self.report)
        if (lines := explained_lines(self.report)) and failing_line(self.capture) is None:
            self.query_one(SourcePane).link(frozenset(lines), lines[-1])
        self.place_chosen = self.place_chosen and self.selected is not None
        tables = self.query_one(TablesPane)
        if not self.place_chosen and tables.chosen != "overview":
            self.call_after_refresh(tables.select)  # a tab that was opened before it had rows
        elif not self.place_chosen and (first := self.query_one(OverviewPane).first) is not None:
            self.selected = first
        self.ask()

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
                self.link(view)
                if view.place is not None and view.place == self.place_to_show and view.place.stage == self.stage:
                    pane.view.go_to(pane.view.index.line_at(view.place.offset))

    @on(Analyst.Asked)
    def _asked(self, event: Analyst.Asked) -> None:
        self.analyst.ask(event)

    @on(Analyst.Broke)
    def _broke(self, event: Analyst.Broke) -> None:
        self._reported = self.capture
        self.settle()
        words = f"{event.what}\nThe texts are still there."
        self.notify(words, title="an analysis failed", severity="error", markup=False)

    # What is shown

    def on_descendant_focus(self) -> None:
        """On a narrow screen the code takes the place of the tables, one text at a time, while it has the focus."""
        in_source = self.query_one(SourcePane).has_focus_within
        in_stage = self.query_one(StagePane).has_focus_within
        if in_source or in_stage:
            self.set_class(in_source, "-source")
        if not isinstance(self.focused, Widget) or not self.query_one(Prompt).has_focus_within:
            self.set_class(in_source or in_stage, "-code")

    def _show_tabs(self) -> None:
        strip, tables = self.query_one("#tabs", TabStrip), self.query_one(TablesPane)
        strip.tabs, strip.chosen = tables.tabs, tables.chosen

    @property
    def _hues(self) -> dict[str, str]:
        return dict(axis_hues(self.report.meshes)) if self.report is not None else {}

    @property
    def line(self) -> str:
        return self.query_one(InspectPane).line

    def action_save(self) -> None:
        self.query_one(Prompt).save(self.focused_pane, self.capture)

    @property
    def usual_pane(self) -> Searchable:
        return self.query_one(StagePane).view
