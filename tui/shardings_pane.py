"""The shardings as a table: every value, asked against got, and the propagation step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static
from textual.worker import get_current_worker

from ..inspector.report import Report, ShardedValue
from ..inspector.shardings.explained import why, wording_of
from ..inspector.shardings.replay import BEFORE, replay_of
from ..inspector.shardings.table import propagated, values
from .pieces import data
from .row_table import RowTable
from .shardings_listing import COLUMNS, FILTERS, Choice, chosen, rows_of_values

MOST_ROWS = 2000
"""Values that are listed at a time; by replicated bytes, these are the ones that matter."""


class ShardingsPane(Vertical):
    """Arguments, outputs and constraints are there at once; all other values follow when they have been read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "order", "order by replicated bytes", show=False),
        Binding("f", "filter", "which values", show=False),
        Binding("full_stop", "step(1)", "the next step of the propagation", show=False),
        Binding("comma", "step(-1)", "the step before", show=False),
        Binding("equals_sign", "end", "the end of the propagation", show=False),
    ]

    report: reactive[Report | None] = reactive(None)
    choice: reactive[Choice] = reactive(Choice())
    count = reactive(0)

    @dataclass
    class Read(Message):
        """The values of a report have been read."""

        report: Report
        values: tuple[ShardedValue, ...]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._values: tuple[ShardedValue, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="shardings-summary", classes="summary")
        yield RowTable(COLUMNS, id="shardings-table")

    def value(self, key: object) -> ShardedValue | None:
        """The value that a row is about."""
        return self._values[key] if isinstance(key, int) and key < len(self._values) else None

    def watch_report(self) -> None:
        if self.report is not None:
            self._values = self.report.shardings
            self._fill()
            self._read(self.report)

    def watch_choice(self) -> None:
        self._fill()

    @work(thread=True, exclusive=True)
    def _read(self, report: Report) -> None:
        found = values(report.capture)
        if not get_current_worker().is_cancelled:
            self.post_message(self.Read(report, found))
        # What makes the first way back slow in a large program is read here, and not when it is asked for.
        for value in found[-1:]:
            why(report.capture, value)

    @on(Read)
    def _have_read(self, event: Read) -> None:
        event.stop()
        if event.report is self.report:
            self._values = (*event.report.shardings, *event.values)
            self._fill()

    def action_order(self) -> None:
        """Order by replicated bytes, or as in the program."""
        self.choice = replace(self.choice, by_bytes=not self.choice.by_bytes)

    def action_filter(self) -> None:
        """List other values."""
        names = list(FILTERS)
        self.choice = replace(self.choice, shown=names[(names.index(self.choice.shown) + 1) % len(names)])

    def action_step(self, direction: int) -> None:
        """Go to another step of the propagation."""
        steps = (BEFORE, *self._steps)
        here = len(steps) - 1 if self.choice.step is None else steps.index(self.choice.step)
        there = min(max(here + direction, 0), len(steps) - 1)
        self.choice = replace(self.choice, step=steps[there])

    def action_end(self) -> None:
        """Leave the replay."""
        self.choice = replace(self.choice, step=None)

    @property
    def _steps(self) -> tuple[int, ...]:
        _, flow = (None, None) if self.report is None else propagated(self.report.capture)
        return () if flow is None else replay_of(flow).steps

    def _fill(self) -> None:
        report, choice = self.report, self.choice
        if report is None:
            return
        listed = chosen(self._values, choice)
        self.count = len(self._values)
        self.query_one("#shardings-summary", Static).update(self._summary(report, choice, len(listed)))
        self.query_one(RowTable).show(rows_of_values(report, listed[:MOST_ROWS], choice.step))

    def _summary(self, report: Report, choice: Choice, count: int) -> Content:
        if not self._values:
            return Content(
                "Nothing is known of shardings: the program has no mesh, or its propagation was not recorded."
            )
        order = "by replicated bytes" if choice.by_bytes else "in the order of the program"
        keys = Content.assemble(
            "   ", ("f ", "$aside"), ("others", "$text-muted"), ("  b ", "$aside"), ("order", "$text-muted")
        )
        if choice.step is None:
            replay = Content.assemble(("  , . ", "$aside"), ("replay", "$text-muted"))
            cut = f", the first {MOST_ROWS:,} of" if count > MOST_ROWS else ","
            return Content.assemble(f"{choice.shown}{cut} {count:,}, {order}", keys, replay)
        return Content.assemble(
            data(self._told(report, choice.step), "bold"),
            ("  , . ", "$aside"),
            ("steps", "$text-muted"),
            ("  = ", "$aside"),
            ("end", "$text-muted"),
        )

    def _told(self, report: Report, step: int) -> str:
        """What a step of the propagation did."""
        _, flow = propagated(report.capture)
        if flow is None or step == BEFORE:
            return "before propagation"
        wording = wording_of(flow)
        moves = [
            f"{move.axis} from {wording.value(move.source, move.axis)} to "
            + ", ".join(wording.value(target, move.axis) for target in move.targets)
            for move in replay_of(flow).moves[step]
        ]
        return f"after step {step} of {self._steps[-1]}: {'; '.join(moves)}"
