"""The collectives as a table: what runs, or what the user wrote."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import reactive
from textual.widgets import Static

from ..inspector.linked import Linked
from ..inspector.report import Collective, Report
from .collectives_listing import COLUMNS, EMPTY, Key, Listing, key_of, listing, programs
from .row_table import RowTable


class CollectivesPane(Vertical):
    """Those that differ in nothing are one row until it is unfolded."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "fold", "unfold", show=False),
        Binding("b", "order", "order", show=False),
        Binding("w", "program", "written or compiled", show=False),
    ]

    report: reactive[Report | None] = reactive(None)
    linked: reactive[Linked | None] = reactive(None)
    wanted: reactive[str] = reactive("")
    by_bytes: reactive[bool] = reactive(False)
    unfolded: reactive[frozenset[Key]] = reactive(frozenset())
    count = reactive(0)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._listing: Listing = EMPTY

    def compose(self) -> ComposeResult:
        yield Static(id="collectives-summary", classes="summary")
        yield RowTable(COLUMNS, id="collectives-table")

    @property
    def table(self) -> RowTable:
        """The rows."""
        return self.query_one(RowTable)

    @property
    def first(self) -> Collective | None:
        """The one in the first row."""
        rows = self._listing.rows
        return self.collective(rows[0].key) if rows else None

    def collective(self, key: object) -> Collective | None:
        """The one that a row is about."""
        return next((one for found, one in self._listing.collectives.items() if found == key), None)

    def watch_report(self) -> None:
        self._fill()

    def watch_wanted(self) -> None:
        self._fill()

    def watch_by_bytes(self) -> None:
        self._fill()

    def watch_unfolded(self) -> None:
        self._fill()

    def watch_linked(self) -> None:
        """Show which rows belong to what is selected, and put the cursor on one of them."""
        table, linked = self.table, self.linked
        keys = [] if linked is None else [key_of(collective) for collective in linked.collectives]
        rows = [self._listing.row_of[key] for key in keys if key in self._listing.row_of]
        table.linked = frozenset(rows)
        exact = None if linked is None or linked.collective is None else key_of(linked.collective)
        table.go_to_key([self._listing.row_of[exact]] if exact is not None and exact in self._listing.row_of else rows)

    def action_fold(self) -> None:
        """Show the collectives of a row one by one, or as one row again."""
        if self.table.rows:
            key = self.table.rows[self.table.cursor].key
            self.unfolded ^= {first for member, first in self._listing.first_of.items() if member == key}

    def action_order(self) -> None:
        """Order by bytes, or as in the text."""
        self.by_bytes = not self.by_bytes

    def action_program(self) -> None:
        """List what runs, or what was written."""
        found = programs(self.report)
        self.wanted = next((stage for stage in found if stage != self._program), "")

    @property
    def _program(self) -> str | None:
        found = programs(self.report)
        return self.wanted if self.wanted in found else found[0] if found else None

    def _fill(self) -> None:
        if self.report is None or self._program is None:
            return
        self._listing = listing(self.report, self._program, self.unfolded, self.by_bytes)
        self.query_one("#collectives-summary", Static).update(self._listing.summary)
        self.table.columns = self._listing.columns
        self.table.show(self._listing.rows)
        self.count = len(self._listing.collectives)
        self.watch_linked()
