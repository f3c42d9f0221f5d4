"""The shardings as a table: every value, requested against actual, and the propagation step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

from ..inspector.render.tables.shardings import EMPTY, values_table
from ..inspector.report import PropagationSteps, Report, ShardedValue
from ..parsers.record import Record
from .analyst import Analyst
from .painted import columns_of, data, rows_of
from .row_table import RowTable

T = TypeVar("T")

IN_CONFLICT = "in conflict"

REPLICATED = "replicated"
"""Values whose copies take most memory, largest first."""

FILTERS: Mapping[str, Callable[[ShardedValue], bool]] = {
    "all values": lambda value: True,
    "arguments and outputs": lambda value: value.role in ("argument", "output"),
    "constraints and shard_maps": lambda value: value.role in ("constraint", "shard_map input", "shard_map output"),
    "intermediate values": lambda value: value.role == "value",
    "differing from requested": lambda value: value.agrees is False,
    REPLICATED: lambda value: bool(value.replicated_bytes),
    IN_CONFLICT: lambda value: True,
}
"""Filters in the order of the key; conflicts are computed on demand."""


class Choice(Record, frozen=True):
    """The listed values: `step` is that of the replay, None for the end of propagation."""

    shown: str = "all values"
    step: int | None = None


def chosen(
    found: Sequence[ShardedValue], choice: Choice, met: frozenset[int] = frozenset()
) -> list[tuple[int, ShardedValue]]:
    """The values that are listed, with their numbers among all; `met` are the numbers of those in conflict."""
    wanted, all_values = FILTERS[choice.shown], choice.shown != IN_CONFLICT
    listed = [(n, value) for n, value in enumerate(found) if wanted(value) and (all_values or n in met)]
    if choice.shown == REPLICATED:
        listed.sort(key=lambda item: -(item[1].replicated_bytes or 0))
    return listed


MAX_ROWS = 2000
"""Values that are listed at a time; by replicated bytes, these are the ones that matter."""


class ShardingsPane(Vertical):
    """Arguments, outputs and constraints are there at once; all other values follow when they have been read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("F", "filter", "filter", tooltip="list other values"),
        Binding("full_stop", "step(1)", "next step", show=False, tooltip="the next step of the propagation"),
        Binding("comma", "step(-1)", "step before", show=False, tooltip="the step of the propagation before"),
        Binding("equals_sign", "end", "the end of the propagation", show=False),
    ]

    report: reactive[Report | None] = reactive(None)
    waiting: reactive[str] = reactive("")
    choice: reactive[Choice] = reactive(Choice())
    count = reactive(0)

    @dataclass
    class Answered(Message):
        """The analyst's answer has arrived."""

        take: Callable[[], None]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._values: tuple[ShardedValue, ...] = ()
        self._met: frozenset[int] | None = None
        self._steps: PropagationSteps | None = None
        self._reads_steps = False

    def compose(self) -> ComposeResult:
        yield Static(id="shardings-summary", classes="summary")
        yield RowTable((), id="shardings-table")

    def value(self, key: object) -> ShardedValue | None:
        return self._values[key] if isinstance(key, int) and key < len(self._values) else None

    def watch_report(self, before: Report | None, report: Report | None) -> None:
        if report is not None:
            # What was read of the same text stays until it has been read again.
            others = self._values[len(before.shardings) :] if before and _alike(before, report, "sdy") else ()
            self._values = (*report.shardings, *others)
            self._reads_steps, self._met = False, None
            if self._steps is not None and not (before and _alike(before, report, "sdy", "hlo-before")):
                self._steps = None
                self.choice = replace(self.choice, step=None)
            self._fill()
            self._ask("values", report.on_demand.values, partial(self._have_read, report))

    def _ask(self, kind: str, work: Callable[[], T], take: Callable[[T], None]) -> None:
        def answer() -> Message:
            found = work()
            return self.Answered(lambda: take(found))

        self.post_message(Analyst.Asked(f"shardings: {kind}", answer, self.post_message))

    @on(Answered)
    def _answered(self, event: Answered) -> None:
        event.stop()
        event.take()

    def _have_read(self, report: Report, found: tuple[ShardedValue, ...]) -> None:
        if report is self.report:
            self._values, self._met = (*report.shardings, *found), None
            self._fill()
            # What makes the first way back slow in a large program is read in advance.
            self._ask("ways", lambda: report.on_demand.why(found[-1], 1) if found else (), lambda ways: None)

    def _have_met(self, found: tuple[ShardedValue, ...], numbers: frozenset[int]) -> None:
        if found is self._values:
            self._met = numbers
            self._fill()

    def action_filter(self) -> None:
        names = list(FILTERS)
        self.choice = replace(self.choice, shown=names[(names.index(self.choice.shown) + 1) % len(names)])
        table = self.query_one(RowTable)
        table.move_to(table.cursor)

    def action_step(self, direction: int) -> None:
        """Go to another step of the propagation; the first time all steps are read."""
        if self._steps is not None:
            self._step(self._steps.numbers, direction)
        elif self.report is not None and not self._reads_steps:
            self._reads_steps = True
            self._fill()
            self._ask("steps", self.report.on_demand.propagation, partial(self._have_steps, self.report, direction))

    def _have_steps(self, report: Report, direction: int, steps: PropagationSteps | None) -> None:
        if report is self.report:
            self._steps, self._reads_steps = steps, False
            self._fill()
            if steps is not None:
                self._step(steps.numbers, direction)

    def _step(self, steps: Sequence[int], direction: int) -> None:
        here = len(steps) - 1 if self.choice.step is None else steps.index(self.choice.step)
        there = min(max(here + direction, 0), len(steps) - 1)
        self.choice = replace(self.choice, step=steps[there])

    def action_end(self) -> None:
        self.choice = replace(self.choice, step=None)

    def _fill(self) -> None:
        report, choice = self.report, self.choice
        if report is None:
            return
        if choice.shown == IN_CONFLICT and self._met is None:
            found = self._values
            self._ask("conflicts", lambda: report.on_demand.in_conflict(found), partial(self._have_met, found))
        listed = chosen(self._values, choice, self._met or frozenset())
        self.count = len(self._values)
        self.query_one("#shardings-summary", Static).update(self._summary(report, choice, len(listed)))
        spec = None if choice.step is None or self._steps is None else partial(self._steps.spec, choice.step)
        shown, table = values_table(report, (value for _, value in listed[:MAX_ROWS]), spec), self.query_one(RowTable)
        table.columns = columns_of(shown)
        table.show(rows_of(shown, {}, [number for number, _ in listed[:MAX_ROWS]]))

    watch_choice = watch_waiting = _fill

    def _summary(self, report: Report, choice: Choice, count: int) -> Content:
        if not self._values:
            return Content(f"{self.waiting} …" if self.waiting else EMPTY)
        order = "largest copies first" if choice.shown == REPLICATED else "program order"
        keys = Content.assemble("   ", ("F ", "$aside"), ("filter", "$text-muted"))
        if choice.shown == IN_CONFLICT and self._met is None:
            return Content("looking for conflicts …")
        if self._reads_steps:
            return Content("reading the steps of the propagation …")
        if choice.step is None:
            replay = Content.assemble(("  , . ", "$aside"), ("step through propagation", "$text-muted"))
            cut = f", the first {MAX_ROWS:,} of" if count > MAX_ROWS else ":"
            return Content.assemble(f"{choice.shown}{cut} {count:,} · {order}", keys, replay)
        return Content.assemble(
            data(self._steps.words(choice.step) if self._steps else "", "bold"),
            ("  , . ", "$aside"),
            ("steps", "$text-muted"),
            ("  = ", "$aside"),
            ("end", "$text-muted"),
        )


def _alike(before: Report, after: Report, *stages: str) -> bool:
    is_read = after.program.stage(stages[0]) is not None
    return is_read and all(before.program.stage(name) is after.program.stage(name) for name in stages)
