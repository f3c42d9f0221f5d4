"""All that is known of what is selected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.style import Style
from textual.widgets import Static

from ..inspector.capture.model import Failure, OutputSummary, Value
from ..inspector.render.why_lines import entry_lines, line_variance
from ..inspector.report import Collective, Confidence, Finding, PlacedMessage, Report, ShardedValue, file_and_line
from ..inspector.report.changes import PassChange
from ..inspector.report.places import ProbePlace, Selection, SourceLine, StagePlace
from ..inspector.report.spelled import axes_text, kind_text
from ..parsers.errors import Problem
from ..parsers.source import Frame
from .details import collective_details, sharding_details
from .device_details import Window, device_details
from .entry_details import Selected, entry_details, explanation_details
from .painted import data, folded, title
from .stage_pane import label_of

MAX_CHARACTERS = 1200
"""Characters of a line that are shown."""

MAX_FRAMES = 16
MAX_NAME = 80
"""Characters of the name that a line begins with."""

MAX_COLLECTIVES = 8
MAX_VALUES = 40
"""Lines about variance."""

HOW: dict[Confidence, str] = {
    "exact": "",
    "name": "(guessed from its name)",
    "shape": "(guessed from types)",
    "none": "unknown",
}


def place_details(linked: Selection, text: str, width: int, origin: Iterable[Content]) -> Iterator[Content]:
    """Return the content of a place that is no collective; `text` is its line, `origin` where it comes from."""
    match linked.place:
        case SourceLine(file, line):
            yield data(file_and_line(file, line), "bold")
        case StagePlace(stage):
            yield from folded(data(f"{_name(text)} · {label_of(stage)}", "bold"), width)
    yield from line_text(text, width)
    yield from origin
    if linked.collectives:
        yield Content("")
        yield title("collectives of this line")
        for collective in linked.collectives[:MAX_COLLECTIVES]:
            yield from folded(_collective(collective), width)
        if (more := len(linked.collectives) - MAX_COLLECTIVES) > 0:
            yield Content.styled(f"and {more} more", "$aside")


def _name(text: str) -> str:
    name, defines, _ = text.strip().partition(" = ")
    return name.removeprefix("ROOT ") if defines and len(name) <= MAX_NAME else "a line"


def line_text(text: str, width: int) -> Iterator[Content]:
    """A line of code, broken to the width."""
    shown = text.strip()[:MAX_CHARACTERS]
    yield Content("")
    yield from folded(data(f"{shown}{'…' if len(text.strip()) > MAX_CHARACTERS else ''}", "$text-muted"), width)


def _stack(stack: Sequence[Frame], confidence: Confidence, width: int, shown: int) -> Iterator[Content]:
    """The stack, innermost first, with a mark at the frame that is shown; a click on another shows that."""
    how = f"  {HOW[confidence]}" if HOW[confidence] else ""
    yield Content("")
    yield Content.assemble(("source", "bold $text-muted"), (how, "$warning"))
    for number, frame in enumerate(stack[:MAX_FRAMES]):
        link = Style.from_meta({"@click": f"screen.show_frame({number})"})
        place = data(file_and_line(frame.file, frame.line)).stylize(link)
        mark = ("▸" if number == shown else " ", "$primary")
        yield Content.assemble(mark, " ", place, " ", data(frame.function, "$aside")).truncate(width, ellipsis=True)
    if len(stack) > MAX_FRAMES:
        yield Content.styled(f"  {len(stack) - MAX_FRAMES} more", "$aside")


def _variance(report: Report | None, selected: Selected, width: int) -> Iterator[Content]:
    text = None if report is None else report.program.jaxpr
    lines: list[str] = []
    if report is None or text is None:
        return
    if isinstance(selected, SourceLine):
        lines = list(line_variance(report, selected.file, selected.line))
    elif isinstance(selected, StagePlace) and selected.stage == "jaxpr":
        place = text.equation_at(selected.offset)
        lines = [] if place is None else list(entry_lines(report, place.id))
    if lines:
        yield Content("")
        yield title("variance")
    for line in lines[:MAX_VALUES]:
        yield from folded(data(line, "$aside" if line.startswith(" ") else ""), width)
    if (more := len(lines) - MAX_VALUES) > 0:
        yield Content.styled(f"and {more} more", "$aside")


def _collective(collective: Collective) -> Content:
    stage = label_of(collective.stage)
    return Content.assemble(data(f"{kind_text(collective)} {axes_text(collective)}"), (f"  {stage}", "$aside"))


NARROWEST = 24
"""Columns that a picture needs in any case."""


class InspectPane(VerticalScroll, can_focus=True):
    """A collective with its groups on the mesh, a line with its stack, or an entry of a table."""

    ALLOW_MAXIMIZE = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+left", "window(0, -1)", "window left", show=False),
        Binding("shift+right", "window(0, 1)", "window right", show=False),
        Binding("shift+up", "window(-1, 0)", "window up", show=False),
        Binding("shift+down", "window(1, 0)", "window down", show=False),
    ]

    report: reactive[Report | None] = reactive(None)
    selected: reactive[Selected | None] = reactive(None)
    linked: reactive[Selection | None] = reactive(None)
    frame_number: reactive[int] = reactive(0)
    waiting: reactive[str] = reactive("")
    line: reactive[str] = reactive("")

    def __init__(self) -> None:
        super().__init__()
        self._window = Window()
        self._group = 0

    def compose(self) -> ComposeResult:
        yield Static(id="inspect-text")

    def watch_selected(self) -> None:
        self._window, self._group = Window(), 0
        self.scroll_home(animate=False)
        self.draw()

    def action_window(self, down: int, right: int) -> None:
        self._window = self._window.moved(down, right)
        self.draw()

    def step(self, direction: int) -> None:
        self._group += direction
        self.draw()

    def draw(self) -> None:
        """Write it anew, for the space that there is."""
        width = max(self.scrollable_content_region.width, NARROWEST)
        self.query_one("#inspect-text", Static).update(Content("\n").join(self._lines(width)))

    watch_linked = watch_line = watch_report = watch_waiting = watch_frame_number = on_resize = draw

    def _lines(self, width: int) -> Iterator[Content]:
        report, selected = self.report, self.selected
        linked = self.linked if self.linked is not None and self.linked.place == selected else None
        stack, shown = () if linked is None else linked.stack, self.frame_number
        match selected:
            case None:
                words = f"{self.waiting} …" if self.waiting else "Select a row, or a line of code."
                yield Content.styled(words, "$aside")
            case Collective() | SourceLine() | StagePlace():
                if linked is None and report is not None:
                    yield Content.styled("reading what belongs to it …", "$aside")
                    yield from line_text(self.line, width)
                elif linked is not None and linked.collective is None:
                    origin = [*_variance(report, selected, width)]
                    if isinstance(selected, StagePlace):
                        origin[:0] = _stack(stack, "exact" if stack else "none", width, shown)
                    yield from place_details(linked, self.line, width, origin)
                elif linked is not None and linked.collective is not None and report is not None:
                    height = max(self.size.height // 2, 12)
                    yield from collective_details(report, linked.collective, linked.causes, width, height, self._group)
                    yield from _variance(report, selected, width)
                    yield from _stack(stack, linked.collective.source.confidence, width, shown)
                    yield from line_text(self.line, width)
            case ProbePlace(number):
                if report is not None and number < len(report.probes):
                    yield from device_details(report, number, self._window, width)
                    if linked is not None:
                        yield from _stack(stack, "exact" if stack else "none", width, shown)
            case ShardedValue() if report is not None:
                yield from sharding_details(report, selected, linked, width)
                yield from _stack(stack, "exact", width, shown) if stack else ()
            case Finding() if report is not None:
                yield from entry_details(report, selected, width)
                yield from _stack(stack, selected.place.source.confidence, width, shown) if stack else ()
            case Failure() if report is not None:
                yield from explanation_details(report, width)
                yield from entry_details(report, selected, width)
            case Value() | OutputSummary() | PlacedMessage() | Problem() | PassChange() if report is not None:
                yield from entry_details(report, selected, width)
