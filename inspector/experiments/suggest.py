"""Other shardings of all arguments: searched by price, the best compiled for the target and measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ...parsers.record import Record
from ..capture.model import Capture
from ..capture.protocol.request import Request
from ..capture.spawn import last_capture
from ..communication.weights import weights_of
from ..pipeline import inspect
from ..report import Experiment, Report
from .lab import MAX_AT_ONCE
from .measured import measured
from .pricing import PricedRow, searched
from .values import compared, for_numbers

MAX_COMPILED = 48
"""Assignments that are compiled, while there is time."""

SEARCH_SHARE = 0.4
"""Share of the time that the search by price may take; the rest is for compilations."""


class Suggestion(Record, frozen=True):
    """An assignment: the arguments whose spec is another one, and what was measured. Today's has none.

    `is_best` is set where no other row is both faster and takes less memory.
    """

    arguments: tuple[tuple[str, str], ...]
    experiment: Experiment
    is_best: bool = False

    @property
    def cost(self) -> float:
        """Seconds of a step on the target; without one, bytes that a device sends."""
        after = self.experiment.after
        return float((after.seconds if after.seconds is not None else after.bytes) or 0.0)

    @property
    def memory(self) -> int:
        """Peak memory of a device."""
        return self.experiment.after.memory or 0


class Suggestions(Record, frozen=True):
    """The rows, today's first, then those that were measured, and how many assignments there are."""

    report: Report
    rows: tuple[Suggestion, ...]
    size: int
    priced: int


def suggested(
    capture: Capture,
    request: Request,
    seconds: float,
    keep: Iterable[str] = (),
    tell: Callable[[str], None] = lambda what: None,
    capture_it: Callable[[Request], Capture] = last_capture,
    at_once: int = MAX_AT_ONCE,
) -> Suggestions:
    """Return what the best assignments of specs to arguments cost; `keep` may hold `params`: those stay as they are.

    `capture_it` captures for a request, here or elsewhere, so many `at_once`; one that raises TimeoutError is left out.
    """
    end = time.monotonic() + seconds
    report = inspect(capture)
    today = measured(report)
    first = Suggestion((), Experiment("tried", before=today, after=today, values="equal"))
    tell("searching by price")
    kept = weights_of(report.program) if "params" in keep else frozenset()
    found = searched(report.program, request.python, seconds * SEARCH_SHARE, kept)
    candidates = [row for row in found.rows if row.arguments][:MAX_COMPILED]

    def tried(row: PricedRow) -> Suggestion | None:
        arguments = tuple(row.arguments.items())
        if time.monotonic() > end:
            return None
        tell(f"compiling {', '.join(f'{name}: {spec}' for name, spec in arguments[:2])}")
        left = max(5.0, end - time.monotonic())
        shardings = (*arguments, *row.results.items())
        wanted = replace(request, program=capture.chosen, shardings=shardings, timeout=left)
        try:
            changed = capture_it(for_numbers(wanted))
        except TimeoutError:
            return None
        if changed.failure is not None:
            return None
        numbers = compared(capture.execution, changed.execution)
        if numbers.values == "differ":
            return None
        after = measured(inspect(changed))
        return Suggestion(arguments, Experiment("tried", before=today, after=after, values=numbers.values))

    with ThreadPoolExecutor(at_once) as pool:
        done = [row for row in pool.map(tried, candidates) if row is not None]
    rows = [first, *done]
    ranked = [replace(row, is_best=not any(_is_better(other, row) for other in rows)) for row in rows]
    ranked.sort(key=lambda row: (row.memory > first.memory * 1.002, row.cost, row.memory))
    return Suggestions(report, tuple(ranked), found.size, len(found.rows))


def _is_better(one: Suggestion, other: Suggestion) -> bool:
    at_least = one.cost <= other.cost and one.memory <= other.memory
    return at_least and (one.cost < other.cost or one.memory < other.memory)
