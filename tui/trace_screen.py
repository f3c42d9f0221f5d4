"""The programs of a trace: the list is the first view, and each program's report is opened from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ..inspector.capture.model import Capture
from ..inspector.render.table import Detail
from ..inspector.render.tables.traces import programs
from ..inspector.render.text.comparison import trace_headline
from ..inspector.report.analyses import Analyses
from ..inspector.report.traces import Program, Trace
from .feed import Feed
from .key_footer import KeyFooter
from .main_screen import MainScreen
from .painted import columns_of, content, data, rows_of
from .prompt import Prompt, PromptedScreen
from .row_table import RowTable

WORDS = """\
Programs are ranked by bytes sent per device in all calls. Enter opens the report of one: what was recorded of \
it at once, and where stages are missing, the script runs once more, without its output, until the program is lowered. \
Escape in a report goes back to the list."""

MAX_DETAILS = 4
"""Lines of arguments under the list."""


class Captures(Protocol):
    """Captures of a program, each with more than the one before; `cancel` ends what makes them."""

    def __iter__(self) -> Iterator[Capture]: ...

    def cancel(self) -> None:
        """Make no more of them."""


CapturesOf = Callable[[Program], Captures]


class TraceScreen(PromptedScreen):
    """The list, and under it the arguments of the program at the cursor."""

    PANES = (Vertical,)

    words = WORDS

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "report", tooltip="the full report of the program"),
        *PromptedScreen.LAST,
    ]

    def __init__(self, trace: Trace, captures_of: CapturesOf, analyses: Analyses) -> None:
        super().__init__()
        self._trace = trace
        self._captures_of = captures_of
        self._analyses = analyses
        self._table = programs(trace)
        self._feeds: dict[int, Feed] = {}

    def compose(self) -> ComposeResult:
        yield Static(data(trace_headline(self._trace).plain, "bold"), id="trace-headline")
        with Vertical():
            yield RowTable(columns_of(self._table), id="trace-table")
        yield Static(id="trace-details", classes="summary")
        yield Static(self._notes(), id="trace-notes", classes="summary")
        yield Prompt()
        yield KeyFooter()

    def on_mount(self) -> None:
        table = self.query_one(RowTable)
        table.nothing = self._table.empty_text
        table.show(rows_of(self._table, {}))
        table.focus()
        self._describe(0)

    def on_unmount(self) -> None:
        for feed in self._feeds.values():
            feed.stop()

    @classmethod
    def key_sections(cls) -> Sequence[tuple[str, Sequence[BindingType]]]:
        return (super().key_sections()[0], ("list", RowTable.BINDINGS))

    @on(RowTable.Moved)
    def _moved(self, event: RowTable.Moved) -> None:
        if isinstance(event.key, int):
            self._describe(event.key)

    @on(RowTable.Opened)
    def _opened(self, event: RowTable.Opened) -> None:
        self.action_open()

    def action_open(self) -> None:
        key = self.query_one(RowTable).selected
        if not isinstance(key, int):
            return
        program = self._table.rows[key].value
        assert isinstance(program, Program)
        if program.path is None:
            self.notify(f"nothing was captured of it: {program.reason or 'it communicates nothing'}", markup=False)
            return
        if key not in self._feeds:
            wanted = self._captures_of(program)
            self._feeds[key] = Feed(wanted, wanted.cancel)
        self.app.push_screen(ProgramScreen(self._feeds[key], self._analyses))

    def _describe(self, key: int) -> None:
        if key < len(self._table.rows):
            details = self._table.details(self._table.rows[key].value)
            self.query_one("#trace-details", Static).update(Content("\n").join(_lines(details)))

    def _notes(self) -> Content:
        return Content("\n").join(content(cell, {}) for cell in self._table.notes())


class ProgramScreen(MainScreen):
    """The report of one program, over the list."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "programs", tooltip="back to the list")]


def _lines(details: Sequence[Detail]) -> Iterator[Content]:
    for detail in details:
        lines = detail.text.splitlines()
        for line in lines[:MAX_DETAILS]:
            yield data(f"{detail.label}  {line}")
        if len(lines) > MAX_DETAILS:
            yield data(f"{detail.label}  and {len(lines) - MAX_DETAILS} more", "$aside")
