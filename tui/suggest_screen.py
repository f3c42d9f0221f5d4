"""The search for other shardings, over the main screen: the rows, and under them the edits of the one at the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static
from textual.worker import get_current_worker

from ..inspector.capture.protocol.request import Request
from ..inspector.render.table import Table, plain_text
from ..inspector.render.tables.suggestions import suggestions
from ..inspector.report import Fix, Report
from ..inspector.report.analyses import Suggest
from ..inspector.report.edits import diff_of
from ..inspector.report.suggestions import Suggestion, Suggestions
from .entry_details import detail_lines
from .key_footer import KeyFooter
from .painted import columns_of, data, rows_of
from .prompt import Prompt, PromptedScreen
from .row_table import RowTable

SECONDS = 60.0
"""Time for the search."""

WORDS = """\
Each row assigns other PartitionSpecs to arguments, results and constraints; it was compiled for the target, and \
measured. Rows that need more memory than today come last; * marks those that no other row beats in both. Under the \
list are the edits that make the requests of the row at the cursor. Escape ends the search."""


class StoppedError(Exception):
    """The user has left."""


class SuggestScreen(PromptedScreen):
    """Searches as soon as it is shown, and until it is left."""

    PANES = (Vertical,)

    words = WORDS

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "copy patch", tooltip="copy the edits as a patch"),
        *PromptedScreen.LAST,
    ]

    def __init__(self, report: Report, request: Request, suggest: Suggest) -> None:
        super().__init__()
        self._report, self._request, self._suggest = report, request, suggest
        self._table: Table | None = None

    def compose(self) -> ComposeResult:
        yield Static(data("searching for other shardings …", "bold"), id="suggest-headline")
        with Vertical():
            yield RowTable((), id="suggest-table")
        with VerticalScroll(id="suggest-details"):
            yield Static()
        yield Prompt()
        yield KeyFooter()

    def on_mount(self) -> None:
        self.query_one(RowTable).focus()
        self._search()

    @classmethod
    def key_sections(cls) -> Sequence[tuple[str, Sequence[BindingType]]]:
        return super().key_sections()[:2]

    @work(thread=True, exclusive=True, description="searching for other shardings")
    def _search(self) -> None:
        worker = get_current_worker()

        def tell(what: str) -> None:
            if worker.is_cancelled:
                raise StoppedError
            self.app.call_from_thread(self._head, f"{what} …")

        try:
            found = self._suggest(self._report.capture, self._request, SECONDS, tell=tell)
        except StoppedError:
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show, found)

    def _head(self, text: str) -> None:
        self.query_one("#suggest-headline", Static).update(data(text, "bold"))

    def _show(self, found: Suggestions) -> None:
        table, shown = self.query_one(RowTable), suggestions(found)
        self._table = shown
        self._head(f"{shown.heading}, {', '.join(map(plain_text, shown.above))}")
        table.columns = columns_of(shown)
        table.show(rows_of(shown, {}))
        self._describe()

    @property
    def _selected(self) -> Suggestion | None:
        key = self.query_one(RowTable).selected
        value = self._table.rows[key].value if self._table is not None and isinstance(key, int) else None
        return value if isinstance(value, Suggestion) else None

    @on(RowTable.Moved)
    def _describe(self) -> None:
        row, table = self._selected, self._table
        if table is not None and row is not None:
            lines = [line for each in table.details(row) for line in detail_lines(each, self.size.width - 4)]
            self.query_one("#suggest-details Static", Static).update(Content("\n").join(lines))

    def action_copy(self) -> None:
        """Copy the edits of the row at the cursor."""
        row = self._selected
        if row is None or not row.edits:
            self.notify("This row has no edits.")
            return
        self.app.copy_to_clipboard("\n".join((*diff_of(self._report.program, Fix("", row.edits)), "")))
        self.notify("copied the patch")
