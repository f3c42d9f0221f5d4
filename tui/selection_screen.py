"""The part of the main screen that knows what is selected, and links the panes by it."""

from __future__ import annotations

from textual import on

from ..inspector.capture.model import Failure
from ..inspector.report import Collective, Finding, FindingPlace, PlacedMessage, ShardedValue
from ..inspector.report.analyses import Analyses
from ..inspector.report.changes import PassChange
from ..inspector.report.places import Place, ProbePlace, SourceLine, StagePlace
from .analyst import Analyst, View
from .diff_screen import DiffScreen
from .edit_loop import EditLoop
from .entry_details import Selected
from .feed import Feed
from .inspect_pane import InspectPane
from .navigation import NavigationScreen
from .stage_pane import SourcePane, StagePane
from .tab_strip import TabStrip
from .tables_pane import TablesPane
from .text_view import TextView


class SelectionScreen(NavigationScreen):
    """Selects what one moves to in any pane, and shows what belongs to it in the others."""

    analyst: Analyst

    def __init__(self, feed: Feed, analyses: Analyses, loop: EditLoop | None = None) -> None:
        super().__init__(feed, analyses, loop)
        self.place_chosen = False

    @on(TextView.Moved, "#source-text")
    def _source_moved(self, event: TextView.Moved) -> None:
        self.select(SourceLine(event.view.source.name, event.line + 1))

    @on(TextView.Moved, "#stage-text")
    def _stage_moved(self, event: TextView.Moved) -> None:
        self.place_to_show = None
        self.select(StagePlace(self.stage, event.view.lines.first_byte(event.line)))

    @on(TablesPane.Picked)
    def _picked(self, event: TablesPane.Picked) -> None:
        self.place_to_show = event.what if isinstance(event.what, StagePlace) else None
        # A row of values is in the iteration to which one has stepped.
        stays = event.opened and isinstance(event.what, ProbePlace) and isinstance(self.selected, ProbePlace)
        if event.what is None:
            self.selected = None
            return
        if not stays:
            self.select(event.what)
        if event.opened:
            self.jumps.leave(self.here)
            if isinstance(event.what, Finding):
                self.read(event.what)
            elif isinstance(event.what, PassChange):
                self.app.push_screen(DiffScreen(event.what.diff))
            else:
                self.show_code(event.what)

    def show_code(self, what: Selected) -> None:
        if not isinstance(what, ProbePlace):
            self.select(what)
        match what:
            case Collective(stage=stage) | StagePlace(stage=stage) | ShardedValue(stage=stage):
                self.action_stage(stage)
            case ProbePlace():
                self.action_stage("jaxpr")
            case Finding(place=FindingPlace(stage=str(stage))):
                self.action_stage(stage)
            case Finding() | Failure():
                self.action_source()
            case PlacedMessage(source=source) if source.frame is not None:
                self.select(SourceLine(source.frame.file, source.frame.line))
                self.action_source()

    @on(TabStrip.Picked)
    def _tab_picked(self, event: TabStrip.Picked) -> None:
        if event.strip.id == "tabs":
            self.action_table(event.tab)
        else:
            self.action_stage(event.tab)

    def watch_selected(self, selected: Selected | None) -> None:
        self.query_one(InspectPane).line = self._line_of(selected)

    def watch_stage(self, stage: str) -> None:
        found = self.capture.stage(stage)
        if found is not None and found.dialect != "jaxpr":
            self.query_one(StagePane).show(stage, found.source)
        self.ask()

    def select(self, what: Selected) -> None:
        self.place_chosen = True
        self.selected = what
        if isinstance(what, Place):
            self.ask()

    def ask(self) -> None:
        report, selected = self.report, self.selected
        if report is not None and report.capture.stage(self.stage) is not None:
            self.analyst.view(report, self.stage, selected if isinstance(selected, Place) else None)

    def _line_of(self, selected: Selected | None) -> str:
        """The text at a place; that of a stage comes with its view."""
        match selected:
            case SourceLine(line=line):
                return self.query_one(SourcePane).view.text_of(line - 1)
            case Collective(stage=name, span=span) if (stage := self.capture.stage(name)) is not None:
                return stage.source.text(span)
            case _:
                return ""

    def link(self, view: View) -> None:
        """Show what belongs to the selection; the source stays at the frame that one went to."""
        before, self.linked = self.linked, view.linked
        if view.linked is None or (
            before is not None and (before.place, before.stack) == (view.linked.place, view.linked.stack)
        ):
            return
        self.frame_number = view.linked.own_frame
        pane = self.query_one(SourcePane)
        if view.source is not None and view.source is not pane.view.source:
            pane.show(view.source, captured=view.source.captured)
        here = [frame.line for frame in view.linked.stack if pane.shows(frame.file)]
        is_missing = not here and view.linked.stack and view.source is None
        pane.miss(view.linked.stack[0].file if is_missing else "")
        moves = here and not isinstance(view.place, SourceLine)
        pane.link(frozenset(here), here[0] if moves else None)
