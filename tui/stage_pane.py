"""The panes of code: a stage with the stages as tabs above it, or why it is not there; and the user's source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from ..inspector.capture.model import PHASES, STAGES, Capture, Failure
from ..inspector.ir.languages import LANGUAGES
from ..inspector.report import Collective
from ..inspector.report.places import Selection, StagePlace
from ..inspector.units import format_seconds
from ..parsers.source import Source
from .drawn_text import COMMUNICATES, Mark, of_dialect, of_python
from .entry_details import code_lines
from .painted import collective_hue, data
from .tab_strip import State, Tab, TabStrip
from .text_view import TextView

MARGIN = 6
"""Columns beside a notice: what surrounds it, and its scroll bar."""


def label_of(stage: str) -> str:
    """Return the short label of a stage; its name, if it is none that captures have."""
    return STAGES[stage].label if stage in STAGES else stage


def stage_tabs(capture: Capture) -> tuple[Tab, ...]:
    """All stages, whether they were reached or not, with the time that each took."""
    missing: State = "failed" if capture.failure is not None else "waiting"
    tabs = []
    for name, kind in STAGES.items():
        stage = capture.stage(name)
        taken = None if stage is None else stage.seconds
        note = "" if taken is None else format_seconds(taken)
        tabs.append(Tab(name, kind.label, state=missing if stage is None else "ready", note=note))
    return tuple(tabs)


def notice(capture: Capture, width: int) -> Content:
    """The phases, done and to come; or the failure with all that is known of it."""
    if capture.failure is not None:
        return failure_content(capture.failure, width)
    if capture.progress is None:
        ended = capture.complete or capture.stages or capture.damage is not None
        return Content.styled("This stage was not recorded." if ended else "starting …", "$aside")
    lines = []
    now = list(PHASES).index(capture.progress.phase)
    for number, (phase, words) in enumerate(PHASES.items()):
        if number < now:
            taken = capture.timings.get(phase)
            done = Content.assemble(("✓ ", "$success"), words)
            lines.append(done if taken is None else Content.assemble(done, (f"  {format_seconds(taken)}", "$aside")))
        else:
            going_on = number == now
            lines.append(Content.styled(f"▸ {words} …" if going_on else f"  {words}", "bold" if going_on else "$aside"))
    return Content("\n").join(lines)


def failure_content(failure: Failure, width: int) -> Content:
    """The message, what to do next, and the traceback or the last words."""
    doing = PHASES.get(failure.phase, failure.phase)
    parts = [Content.styled(f"Stopped while {doing}", "bold $error"), data(failure.message, "bold")]
    if failure.hint:
        parts.append(Content.assemble(("hint: ", "bold $warning"), data(failure.hint)))
    if failure.details:
        parts.append(Content("\n").join(code_lines(failure.details.strip("\n"), width)))
    return Content("\n\n").join(parts)


class StagePane(Vertical):
    """Shows the chosen stage, or what there is to say while it is not there."""

    ALLOW_MAXIMIZE = True

    capture: reactive[Capture] = reactive(Capture())
    stage = reactive("")
    linked: reactive[Selection | None] = reactive(None)

    def compose(self) -> ComposeResult:
        yield TabStrip(id="stages")
        yield TextView(id="stage-text")
        with VerticalScroll(id="stage-notice", can_focus=True):
            yield Static(id="stage-notice-text")

    @property
    def view(self) -> TextView:
        return self.query_one("#stage-text", TextView)

    @property
    def notice_view(self) -> Widget:
        """The notice in place of a text that is missing."""
        return self.query_one("#stage-notice")

    def watch_linked(self, linked: Selection | None) -> None:
        """Show which lines belong to what is selected, and bring the first one into view."""
        view = self.view
        lines = () if linked is None else [view.index.line_at(span.start) for span in linked.spans]
        view.linked = frozenset(lines)
        here = linked is not None and isinstance(linked.place, StagePlace) and linked.place.stage == self.stage
        if lines and not here:
            # A collective comes before what it calls: the parameters of its reduction are linked too.
            view.go_to(next((line for line in lines if line in view.marks), lines[0]))

    def show(self, stage: str, source: Source) -> None:
        """Show the text of a stage; which one is chosen, this pane may learn only after it."""
        if self.view.source is not source:
            dialect = STAGES[stage].dialect
            self.view.show(source, of_dialect(dialect), LANGUAGES[dialect].debug_info)

    def mark(self, collectives: tuple[Collective, ...], hues: Mapping[str, str]) -> None:
        view = self.view
        view.marks = {
            view.index.line_at(collective.span.start): (COMMUNICATES, collective_hue(collective.axes, hues))
            for collective in collectives
        }

    def _refresh(self) -> None:
        strip = self.query_one(TabStrip)
        strip.tabs = stage_tabs(self.capture)
        strip.chosen = self.stage
        there = self.capture.stage(self.stage) is not None
        self.view.display = there
        self.query_one("#stage-notice").display = not there
        if not there:
            self.query_one("#stage-notice-text", Static).update(notice(self.capture, max(self.size.width - MARGIN, 20)))

    watch_capture = watch_stage = on_resize = _refresh


class SourcePane(Vertical):
    """One file at a time: the script, or whichever file the selected stack frame is in."""

    ALLOW_MAXIMIZE = True

    def __init__(self) -> None:
        super().__init__()
        self._marks: dict[str, dict[int, Mark]] = {}
        self._note = self._shown_name = ""

    def compose(self) -> ComposeResult:
        yield Static("Source", id="source-title", classes="pane-title")
        yield TextView(id="source-text")

    @property
    def view(self) -> TextView:
        return self.query_one(TextView)

    def show(self, source: Source, captured: bool) -> None:
        """Show a file, which was captured, or else read from disk and may have changed since."""
        if self.view.source is source:
            return
        self._shown_name = source.name
        self._note = "" if captured else "  as it is on disk now"
        self.miss("")
        self.view.show(source, of_python(source))
        self._show_marks()

    def miss(self, file: str) -> None:
        """Say in the title which file should be shown and cannot be; none if it is empty."""
        name = data(os.path.basename(self._shown_name) or "Source", "bold")
        missing = f"  {os.path.basename(file)} is not in the capture" if file else self._note
        self.query_one("#source-title", Static).update(Content.assemble(" ", name, data(missing, "$warning")))

    def shows(self, file: str) -> bool:
        return os.path.normpath(file) == os.path.normpath(self.view.source.name)

    def mark(self, collectives: Iterable[Collective], hues: Mapping[str, str]) -> None:
        """Mark the lines that collectives come from, in whichever file is shown, in the colours of their axes."""
        lines: dict[str, dict[int, Mark]] = {}
        for collective in collectives:
            innermost = {os.path.normpath(frame.file): frame.line for frame in reversed(collective.source.stack)}
            for file, line in innermost.items():
                lines.setdefault(file, {}).setdefault(line - 1, (COMMUNICATES, collective_hue(collective.axes, hues)))
        self._marks = lines
        self._show_marks()

    def _show_marks(self) -> None:
        self.view.marks = self._marks.get(os.path.normpath(self.view.source.name), {})

    def link(self, lines: frozenset[int], first: int | None) -> None:
        """Show which lines, counted from 1, belong to what is selected, and bring one into view."""
        self.view.linked = frozenset(line - 1 for line in lines)
        if first is not None:
            self.view.go_to(first - 1)
