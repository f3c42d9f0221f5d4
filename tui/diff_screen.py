"""Differences between two lowerings: the headline, both texts around the selection, and a table of all changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static
from textual.worker import get_current_worker

from ..inspector.capture.model import CaptureError
from ..inspector.ir.languages import LANGUAGES
from ..inspector.render.diff_words import SIGNS
from ..inspector.render.headline import headline
from ..inspector.render.printable import printable
from ..inspector.render.table import Column, Table, plain_text
from ..inspector.render.tables.comparison import screen_tables
from ..inspector.report.changes import Change, ChangeKind, Diff, Facing
from ..inspector.units import plural
from .drawn_text import Mark, of_dialect
from .key_footer import KeyFooter
from .painted import Row, columns_of, data
from .prompt import Prompt, PromptedScreen
from .row_table import RowTable
from .text_view import TextView

WHAT, TEXT = 1, 3
"""The columns that hold both cells of what is no communication."""


def diff_columns(found: Diff) -> tuple[Column, ...]:
    """The columns about communication."""
    return columns_of(screen_tables(found)[0])


def diff_rows(found: Diff) -> Iterator[Row]:
    """The key of a change is its number, and that of anything else its text."""
    communication, *others = screen_tables(found)
    numbers = {id(change): number for number, change in enumerate(found.changes)}
    for row in communication.rows:
        first = next(iter(row.value)) if isinstance(row.value, tuple) else None
        yield Row(numbers[id(first)], row.cells)
    for table in others:
        yield from _two_cells(table, len(communication.columns))


def _two_cells(table: Table, columns: int) -> Iterator[Row]:
    for row in table.rows:
        what, text = row.cells
        cells = {WHAT: what, TEXT: text}
        yield Row(plain_text(what), tuple(cells.get(column, "") for column in range(columns)), spans=True)


SIDES = ("before", "after")

STYLES: Mapping[ChangeKind, str] = {"added": "$success", "removed": "$error", "changed": "$warning"}
"""The colours of the signs of lines."""

WORDS = """\
The first line says what changed. Each row of the table is a change, and brings both texts to it: + came, − went, ~ \
does something else, = does the same as another number of collectives.

In the texts, ▶ is the cursor and ┃ what both have: the cursor of the other text goes there, too. ~ is a line that \
differs, + one that only the text after has, − one that only the text before has."""


class DiffPane(Vertical):
    """A text or the table, each with its title."""

    ALLOW_MAXIMIZE = True


class DiffScreen(PromptedScreen):
    """The texts are linked: the cursor of one goes to what the other has for the same, where there is such a thing."""

    # Textual does not declare these as class variables.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-normal")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-tall")]  # noqa: RUF012

    PANES = (DiffPane,)

    words = WORDS

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "side('before')", "before", tooltip="the text before"),
        Binding("2", "side('after')", "after", tooltip="the text after"),
        Binding("3", "changes", "changes", tooltip="the table of what differs"),
        PromptedScreen.ZOOM,
        *PromptedScreen.LAST,
    ]

    def __init__(self, found: Diff) -> None:
        super().__init__()
        self._found = found
        self._facings: Sequence[Facing] = ()

    def compose(self) -> ComposeResult:
        yield Static(data(headline(self._found), "bold"), id="diff-headline")
        with Horizontal(id="upper"):
            for side, outline in zip(SIDES, (self._found.before, self._found.after), strict=True):
                with DiffPane(id=f"diff-side-{side}", classes="diff-side"):
                    title = Content.assemble((f"{side}  ", "$aside"), data(outline.title))
                    yield Static(title, classes="pane-title")
                    yield TextView(id=f"diff-{side}")
        with DiffPane(id="diff-changes"):
            yield Static(self._summary(), classes="summary")
            yield RowTable(diff_columns(self._found), id="diff-table")
        yield Prompt()
        yield KeyFooter()

    def on_mount(self) -> None:
        for side, outline in zip(SIDES, (self._found.before, self._found.after), strict=True):
            if outline.text is not None:
                dialect = outline.text.dialect
                self._view(side).show(outline.text.source, of_dialect(dialect), LANGUAGES[dialect].debug_info)
        table = self.query_one(RowTable)
        table.show(list(diff_rows(self._found)))
        table.focus()
        if self._found.changes:
            self._look(self._found.changes[0])

    def action_side(self, side: str) -> None:
        self._view(side).focus()

    def action_changes(self) -> None:
        self.query_one(RowTable).focus()

    @on(RowTable.Moved)
    def _selected(self, event: RowTable.Moved) -> None:
        if isinstance(event.key, int):
            self._look(self._found.changes[event.key])

    @work(thread=True, exclusive=True, description="looking around a change")
    def _look(self, change: Change) -> None:
        worker = get_current_worker()
        facings = self._found.around(change)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show, change, facings)

    def _show(self, change: Change, facings: Sequence[Facing]) -> None:
        """Both texts at the change: what corresponds is linked, what differs has a mark."""
        self._facings = facings
        for side, transfer in zip(SIDES, (change.before, change.after), strict=True):
            view = self._view(side)
            lines = {line: facing for facing in facings if (line := self._line(facing, side)) is not None}
            view.marks = _marks(lines)
            view.linked = frozenset(line for line, facing in lines.items() if facing.before and facing.after)
            if transfer is not None and transfer.span is not None:
                view.go_to(view.index.line_at(transfer.span.start))
            elif view.linked:
                view.go_to(max(view.linked))

    @on(TextView.Moved)
    def _follow(self, event: TextView.Moved) -> None:
        here = (event.view.id or "").removeprefix("diff-")
        there = next(side for side in SIDES if side != here)
        for facing in self._facings:
            line = self._line(facing, there)
            if self._line(facing, here) == event.line and line is not None:
                self._view(there).go_to(line)

    def _view(self, side: str) -> TextView:
        return self.query_one(f"#diff-{side}", TextView)

    def _line(self, facing: Facing, side: str) -> int | None:
        node = facing.before if side == "before" else facing.after
        return None if node is None else self._view(side).index.line_at(node.span.start)

    def _summary(self) -> Content:
        found = self._found
        counts = " → ".join(plural(side.count, "collective") for side in (found.before, found.after))
        return Content(f"{found.after.stage}: {counts}; the same on both sides: {found.same}")


class ComparingScreen(PromptedScreen):
    """A screen that can show a diff over itself."""

    @work(thread=True, exclusive=True, group="compare", description="comparing")
    def show_diff(self, make: Callable[[], Diff]) -> None:
        """Show what differs, or the reason why it cannot be told, as of a capture that has not come so far."""
        try:
            screen = DiffScreen(make())
        except CaptureError as error:
            self.app.call_from_thread(self.notify, printable(str(error)), severity="warning", markup=False)
        else:
            self.app.call_from_thread(self.app.push_screen, screen)


def _marks(lines: Mapping[int, Facing]) -> dict[int, Mark]:
    marks = {}
    for line, facing in lines.items():
        if not facing.same:
            kind: ChangeKind = "added" if not facing.before else "removed" if not facing.after else "changed"
            marks[line] = SIGNS[kind], STYLES[kind]
    return marks
