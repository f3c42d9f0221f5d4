"""Differences between the processes of a run: the list, what each group of ranks does, and the lines of two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from ..inspector.capture.file import load
from ..inspector.ir.program import Program, file_on_disk
from ..inspector.render.table import Column, count_cell
from ..inspector.render.tables.traces import headline_parts, outcome, ranks_summary
from ..inspector.report import Report, file_and_line
from ..inspector.report.analyses import Analyses
from ..inspector.report.changes import Diff
from ..inspector.report.traces import Divergence, Side, Trace, ranks_text
from .diff_screen import ComparingScreen, DiffPane
from .drawn_text import of_python
from .key_footer import KeyFooter
from .painted import Row, data, folded
from .prompt import Prompt, PromptedScreen
from .row_table import RowTable
from .text_lines import EMPTY
from .text_view import TextView

COLUMNS = (Column("program", 8, 2), Column("difference", 20, 3), Column("groups", 6, 4, align="right"))

WORDS = """\
Each row is a difference between processes that have to run the same programs in the same order; a cluster hangs \
there. Below it is what each group of ranks does, then the line of the first group beside that of another one: , and . \
go through the groups. Enter compares both programs in full."""

MAX_SIDES = 6
"""Groups of ranks that are listed."""

MAX_LINES = 3
"""Lines of one of them."""

MAX_NOTES = 4
"""Lines about all of them."""


class RanksScreen(ComparingScreen):
    """The texts are those of the files on disk, as the processes have just run them."""

    # Textual does not declare this as a class variable.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-normal")]  # noqa: RUF012

    PANES = (DiffPane,)

    words = WORDS

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "compare", "compare", tooltip="the differences between both programs"),
        Binding("comma", "step_in(-1)", "group before", show=False, tooltip="the group of ranks before"),
        Binding("full_stop", "step_in(1)", "next group", tooltip="the next group of ranks"),
        PromptedScreen.ZOOM,
        *PromptedScreen.LAST,
    ]

    def __init__(self, trace: Trace, analyses: Analyses) -> None:
        super().__init__()
        self._trace = trace
        self._inspect = analyses.inspect
        self._other = 1

    def compose(self) -> ComposeResult:
        yield Static(data("   ".join(headline_parts(self._trace)), "bold"), id="trace-headline")
        with DiffPane(id="ranks-list"):
            yield Static(data(outcome(self._trace.ranks)), classes="summary")
            yield RowTable(COLUMNS, id="ranks-table")
        yield Static(id="ranks-sides", classes="summary")
        with Horizontal(id="ranks-lines"):
            for side in ("first", "other"):
                with DiffPane(id=f"ranks-side-{side}", classes="diff-side"):
                    yield Static(id=f"ranks-title-{side}", classes="pane-title")
                    yield TextView(id=f"ranks-{side}")
        yield Static(Content("\n").join(self._summary()), id="ranks-summary", classes="summary")
        yield Prompt()
        yield KeyFooter()

    def on_mount(self) -> None:
        table = self.query_one(RowTable)
        table.nothing = "" if len(self._trace.ranks.ranks) < 2 else "No differences in what was compared."
        table.show([_row(number, each) for number, each in enumerate(self._trace.ranks.divergences)])
        table.focus()
        self.query_one("#ranks-lines").display = bool(self._trace.ranks.divergences)
        self._show()

    def on_resize(self) -> None:
        self._describe()

    def action_step_in(self, direction: int) -> None:
        count = len(self._selected.sides) if self._selected is not None else 0
        if count > 1:
            self._other = (self._other - 1 + direction) % (count - 1) + 1
            self._show()

    @on(RowTable.Opened)
    def _opened(self) -> None:
        self.action_compare()

    def action_compare(self) -> None:
        shown = self._shown
        if shown is None or any(side.program is None or side.program.path is None for side in shown):
            self.notify("Only one of these groups has a program of its own.", severity="warning")
            return
        programs = [(side.ranks, side.program.path) for side in shown if side.program and side.program.path]
        self.show_diff(lambda: _diff(programs, self._inspect))

    @on(RowTable.Moved)
    def _moved(self) -> None:
        self._other = 1
        self._show()

    @property
    def _selected(self) -> Divergence | None:
        key = self.query_one(RowTable).selected
        return self._trace.ranks.divergences[key] if isinstance(key, int) else None

    @property
    def _shown(self) -> tuple[Side, Side] | None:
        selected = self._selected
        if selected is None:
            return None
        return selected.sides[0], selected.sides[min(self._other, len(selected.sides) - 1)]

    def _summary(self) -> Iterator[Content]:
        lines = list(ranks_summary(self._trace))
        yield from map(data, lines[:MAX_NOTES])
        if len(lines) > MAX_NOTES:
            yield data(f"and {len(lines) - MAX_NOTES} more lines in the text report", "$aside")

    def _show(self) -> None:
        self._describe()
        for name, side in zip(("first", "other"), self._shown or (), strict=False):
            file = None if side.place is None else file_on_disk(side.place.file)
            view = self.query_one(f"#ranks-{name}", TextView)
            absent = "  not on disk" if file is None and side.place is not None else ""
            title = Content.assemble((f"{ranks_text(side.ranks)}  ", "bold"), data(f"{_place(side)}{absent}"))
            view.display = file is not None
            self.query_one(f"#ranks-title-{name}", Static).update(title)
            view.show(file or EMPTY, of_python(file or EMPTY))
            if file is not None and side.place is not None:
                view.linked = frozenset({side.place.line - 1})
                view.go_to(side.place.line - 1)

    def _describe(self) -> None:
        selected, width = self._selected, self.size.width - 4
        lines = [] if selected is None else folded(data(selected.title, "bold"), width)
        if selected is not None:
            lines += _sides(selected.sides, self._shown or (), width)
        self.query_one("#ranks-sides", Static).update(Content("\n").join(lines))


def _diff(programs: Sequence[tuple[tuple[int, ...], Path]], inspect: Callable[[Program], Report]) -> Diff:
    one, other = (inspect(Program(load(path))) for _, path in programs)
    found = one.diff_to(other)
    before, after = (
        replace(side, title=f"{ranks_text(ranks)}: {side.title}")
        for side, (ranks, _) in zip((found.before, found.after), programs, strict=True)
    )
    return replace(found, before=before, after=after)


def _row(number: int, found: Divergence) -> Row:
    return Row(number, (found.program, found.title, count_cell(len(found.sides))))


def _sides(sides: Sequence[Side], shown: Sequence[Side], width: int) -> Iterator[Content]:
    label = max(len(ranks_text(side.ranks)) for side in sides) + 2
    for side in sides[:MAX_SIDES]:
        style = "bold" if side in shown else ""
        lines = folded(data(side.text, style), width - label)
        for number, line in enumerate(lines[:MAX_LINES]):
            yield Content.assemble((f"{'' if number else ranks_text(side.ranks):<{label}}", "$aside"), line)
    if len(sides) > MAX_SIDES:
        yield data(f"and {len(sides) - MAX_SIDES} more groups", "$aside")


def _place(side: Side) -> str:
    return "no line is known" if side.place is None else file_and_line(side.place.file, side.place.line)
