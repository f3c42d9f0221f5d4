"""Other requests of a program: searched by price, the best compiled and measured, and written as edits."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from threading import Semaphore

from ..capture.model import Capture, Execution
from ..capture.protocol.request import Request
from ..capture.spawn import last_capture
from ..communication.weights import weights_of
from ..findings.fixes.edits import Edits, overlap, together
from ..pipeline import inspect
from ..report import Experiment, Report
from ..report.suggestions import Suggestion, Suggestions
from .edited import captured_with
from .lab import GRACE_S, MAX_AT_ONCE, MAX_TIMES
from .measured import measured
from .pricing import PricedCandidate, PricedChange, PricedRow, prices, searched
from .spec_places import entries_in, shortened
from .suspects import MAX_OF_ONE_PRICE, obstacle
from .values import compared, for_numbers
from .written import fixes_of, titled

MAX_COMPILED = 48
"""Assignments that are compiled, while there is time."""

PRICING_SHARE, SEARCH_SHARE = 0.1, 0.3
WRITING_SHARE = 0.3
"""Shares of the time: those that single changes and the search by price may take, and that which is left for edits."""

MAX_SINGLE, SINGLE_SHARE = 6, 0.4
"""Single changes that are compiled, as edits, which may request more than the change that they are written for; and the
share of the time for compiling in which they are begun."""

ALIKE = 1e-3
"""Share of the most expensive row's cost up to which rows cost alike."""

NEAR = 0.02
"""Share up to which assignments that send and hold about as much are taken for one."""

MORE = 1.002
"""Memory, by that of the program, from which an assignment needs more."""

MAX_WAYS = 4
"""Ways to write an assignment that are compiled."""


class _Assignment(Suggestion, frozen=True):
    row: PricedRow | None = None


def suggested(
    capture: Capture,
    request: Request,
    seconds: float,
    keep: Iterable[str] = (),
    tell: Callable[[str], None] = lambda what: None,
    capture_it: Callable[[Request], Capture] = last_capture,
    at_once: int = MAX_AT_ONCE,
) -> Suggestions:
    """Return what the best assignments of specs cost; `keep` may hold `params`: those stay as they are.

    `capture_it` captures for a request, here or elsewhere, so many `at_once`; one that raises TimeoutError is left out.
    Copies of the source are compiled here. `tell` hears what is being done; what it raises ends the search.
    """
    end = time.monotonic() + seconds
    report = inspect(capture)
    tell("searching by price")
    kept = weights_of(report.program) if "params" in keep else frozenset()
    single = prices(report.program, request.python, seconds * PRICING_SHARE).candidates
    found = searched(report.program, request.python, seconds * SEARCH_SHARE, kept)
    candidates = _in_turns([row for row in found.rows if row.changes])[:MAX_COMPILED]
    trials = _Trials(report, request, kept, tell)
    soon = end - seconds * WRITING_SHARE
    with ThreadPoolExecutor(MAX_AT_ONCE) as pool:
        few = trials.ways_of(single)
        until = time.monotonic() + SINGLE_SHARE * (soon - time.monotonic())
        rows = [trials.today, *filter(None, pool.map(lambda way: trials.single(way[0], way[1], until), few.items()))]
    known = [row.arguments for row in rows]
    with ThreadPoolExecutor(at_once) as pool:
        more = filter(None, pool.map(lambda row: trials.tried(row, capture_it, soon), candidates))
        rows += [row for row in more if row.arguments not in known or not row.arguments]
    first = sorted(_ranked(rows, trials.today.memory), key=lambda row: not row.is_best)
    with ThreadPoolExecutor(MAX_AT_ONCE) as pool:
        rows = list(pool.map(lambda row: trials.written(row, end), first))
    return Suggestions(report, tuple(_ranked(rows, trials.today.memory)), found.size, found.better)


def _in_turns(rows: list[PricedRow]) -> list[PricedRow]:
    """The rows in their order, those last of about whose price there are others: most often they are one program."""
    alike = Counter[tuple[int, ...]]()
    turns = []
    for row in rows:
        key = tuple(round(math.log1p(size) / NEAR) for size in (row.price, row.held))
        turns.append(alike[key])
        alike[key] += 1
    return [row for _, row in sorted(zip(turns, rows, strict=True), key=lambda each: each[0] // MAX_OF_ONE_PRICE)]


def _ranked(rows: list[_Assignment], memory: int) -> list[_Assignment]:
    """The rows by cost, of those that cost alike the one first that takes less memory; those that need more last."""
    ranked = [replace(row, is_best=not any(_is_better(other, row) for other in rows)) for row in rows]
    unit = ALIKE * max((row.cost for row in rows), default=0.0) or 1.0
    return sorted(ranked, key=lambda row: (row.memory > MORE * memory, round(row.cost / unit), row.memory, row.cost))


class _Trials:
    """Compiles assignments of one program."""

    def __init__(self, report: Report, request: Request, kept: Collection[str], tell: Callable[[str], None]) -> None:
        self._report, self._kept, self._tell = report, kept, tell
        self._request = for_numbers(replace(request, program=report.capture.chosen))
        self._before = measured(report)
        self._here = Semaphore(MAX_AT_ONCE)
        self._too_large: list[PricedRow] = []
        self._least = GRACE_S + MAX_TIMES * sum(report.capture.timings.values())
        self.today = _Assignment(Experiment("tried", before=self._before, after=self._before, values="equal"))

    def tried(self, row: PricedRow, capture_it: Callable[[Request], Capture], end: float) -> _Assignment | None:
        """Compile an assignment; None where the time is up, or it is not to be shown."""
        if row.shardings is None:
            return self._with_edits(row, end, lambda found: True)
        if time.monotonic() > end or self._is_more_of_the_same(row):
            return None
        self._tell(f"compiling {', '.join(f'{name}: {spec}' for name, spec in row.shardings[:2])}")
        left = max(self._least, end - time.monotonic())
        try:
            return self._outcome(row, capture_it(replace(self._request, shardings=row.shardings, timeout=left)))
        except TimeoutError:
            return None

    def _is_more_of_the_same(self, row: PricedRow) -> bool:
        """Return whether one that sends and holds no more needed more memory than the program."""
        return any(one.price <= row.price and one.held <= (1 + NEAR) * row.held for one in self._too_large)

    def ways_of(self, candidates: Iterable[PricedCandidate]) -> dict[Edits, PricedCandidate]:
        """The first ways to write the first changes that can be written."""
        found: dict[Edits, PricedCandidate] = {}
        for each in candidates:
            ways = (fix.edits for fix in fixes_of(self._report, each) if fix.edits)
            first = next((edits for edits in ways if not obstacle(self._report, edits)), None)
            if first is not None:
                found.setdefault(first, each)
            if len(found) == MAX_SINGLE:
                break
        return found

    def single(self, edits: Edits, candidate: PricedCandidate, end: float) -> _Assignment | None:
        """Compile a change as it is written: with all arguments that get another spec by it."""
        if time.monotonic() > end:
            return None
        changed = self._captured([candidate], edits, end)
        before = {each.path: each.spec for each in self._report.capture.arguments}
        now = () if changed is None else ((each.path, each.spec) for each in changed.arguments)
        changes = tuple(
            PricedChange("argument", path, shortened(spec), before[path], True)
            for path, spec in now
            if path in before and entries_in(spec or "P()") != entries_in(before[path] or "P()")
        )
        if any(each.name in self._kept for each in changes):
            return None
        return self._outcome(PricedRow(changes or candidate.changes, candidate.price, 0.0), changed, edits)

    def _outcome(self, row: PricedRow, changed: Capture | None, edits: Edits = ()) -> _Assignment | None:
        if changed is None or changed.failure is not None:
            return None
        numbers = compared(self._unchanged, changed.execution, nudged=lambda: self._nudged)
        if numbers.values == "differ":
            return None
        done = Experiment("tried", before=self._before, after=measured(inspect(changed)), values=numbers.values)
        found = _assignment(done, row, edits)
        if found.memory > MORE * self.today.memory:
            self._too_large.append(row)
        return found

    @cached_property
    def _unchanged(self) -> Execution | None:
        run = self._report.capture.execution
        return last_capture(self._request).execution if run is not None and run.uniform_inputs else run

    @cached_property
    def _nudged(self) -> Execution | None:
        return last_capture(replace(self._request, nudged=True)).execution

    def written(self, found: _Assignment, end: float) -> _Assignment:
        """The same row, with edits that cost the same where there are any."""
        if found.row is None or found.edits:
            return found
        known = found.experiment.after

        def is_same(other: Suggestion) -> bool:
            after = other.experiment.after
            return (after.collectives, after.bytes, after.held) == (known.collectives, known.bytes, known.held)

        again = self._with_edits(found.row, end, is_same)
        return found if again is None else replace(found, edits=again.edits)

    def _with_edits(self, row: PricedRow, end: float, is_wanted: Callable[[Suggestion], bool]) -> _Assignment | None:
        """Write an assignment into copies of the source, until one has its arguments and is wanted."""
        wanted = {each.name: entries_in(each.spec or "P()") for each in row.changes if each.kind == "argument"}
        for edits in itertools.islice(self._ways(row), MAX_WAYS):
            if time.monotonic() >= end:
                break
            changed = self._captured(row.groups, edits, end)
            specs = () if changed is None else ((each.path, each.spec) for each in changed.arguments)
            if wanted.items() <= {path: entries_in(spec or "P()") for path, spec in specs if path in wanted}.items():
                found = self._outcome(row, changed, edits)
                if found is not None and is_wanted(found):
                    return found
        return None

    def _captured(self, changes: Sequence[PricedCandidate], edits: Edits, end: float) -> Capture | None:
        with self._here:
            self._tell(f"writing {', '.join(titled(each) for each in changes[:2])}")
            request = replace(self._request, timeout=max(self._least, end - time.monotonic()))
            return captured_with(self._report.program, request, edits)

    def _ways(self, row: PricedRow) -> Iterator[Edits]:
        """The ways to write an assignment: those of each group of its changes together.

        First without those of results, which may be requested by the same specs.
        """
        written = {group: [fix.edits for fix in fixes_of(self._report, group) if fix.edits] for group in row.groups}
        few = [ways for group, ways in written.items() if group.changes[0].kind != "result"]
        of_all = itertools.product(*written.values())
        of_few = itertools.product(*few) if few and len(few) < len(written) else ()
        for parts in itertools.chain(itertools.islice(of_few, 1), of_all):
            edits = together(*parts)
            is_clear = not any(overlap(one, other) for one, other in itertools.combinations(dict.fromkeys(parts), 2))
            if is_clear and not obstacle(self._report, edits):
                yield edits


def _assignment(done: Experiment, row: PricedRow, edits: Edits) -> _Assignment:
    arguments, results = (
        {each.name: each.spec for each in row.changes if each.kind == kind and each.spec is not None}
        for kind in ("argument", "result")
    )
    requested = (each for each in row.changes if each.kind == "result" and (not each.tied or each.now))
    constraints = (each for each in row.groups if each.changes[0].kind in ("constraint", "new"))
    requests = (
        *(f"{name}: {spec}" for name, spec in arguments.items()),
        *(f"{titled(each)} (line {each.changes[0].stack[0].line})" for each in constraints if each.changes[0].stack),
        *(f"{each.name}: {each.spec}" for each in requested),
    )
    return _Assignment(done, arguments, results, requests, edits, row=row)


def _is_better(one: Suggestion, other: Suggestion) -> bool:
    at_least = one.cost <= other.cost and one.memory <= other.memory
    return at_least and (one.cost < other.cost or one.memory < other.memory)
