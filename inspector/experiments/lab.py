"""Experiments: changes made in a copy of the source, compiled, run, and compared with the unchanged program."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from ..capture.model import PHASES, Capture, Execution
from ..capture.protocol.request import Request
from ..capture.scratch import Scratch
from ..capture.spawn import last_capture
from ..findings.fixes.calls import has_keyword
from ..findings.fixes.edits import Edits, overlap
from ..findings.rules import rule_of
from ..findings.settled import settled
from ..pipeline import inspect
from ..report import ComparedBy, Elsewhere, Experiment, Finding, Fix, Report
from ..report.policy import EVERYTHING, Policy
from ..values.distances import ROUNDING
from .edited import captured_with, devices_of
from .elsewhere import elsewhere
from .measured import measured, received_next
from .pricing import Prices, prices
from .rewrites import rewrites
from .suspects import RULE, WORK_RULES, confirmed, obstacle, with_suspects
from .switches import draws_others
from .values import Comparison, compared, evaluated_results, for_numbers, is_finite, is_unstable
from .verdict import Side, is_more, judged, may_help
from .written import with_true_title

MIN_SECONDS, MAX_SECONDS = 2.0, 20.0
"""Limits of the time that experiments take where none is given."""

GRACE_S = 10.0
MAX_TIMES = 3
"""Limits of an experiment that was begun in time: seconds, and as a multiple of what the capture took."""

PRICING_SHARE = 0.5
"""Share of the time in which candidates may be priced; the rest is for trying the best of them."""

MAX_AT_ONCE = 2
"""Experiments that run at the same time: each compiles, on as many fake devices as the program has."""

MAX_BYTES = 2**30
"""Limit of arguments, results and temporaries of all devices up to which numbers of programs for other devices are
compared."""

MAX_FLOPS = 1e12

Tell = Callable[[str], None]


def usual_seconds(report: Report) -> float:
    """Return the time for experiments where none is given: what it took to compile the program, within limits."""
    phases = ("import", "script", "trace", "lower", "compile")
    taken = sum(report.capture.timings.get(phase, 0.0) for phase in phases)
    return min(max(taken, MIN_SECONDS), MAX_SECONDS)


def tried(
    report: Report,
    request: Request,
    policy: Policy = EVERYTHING,
    seconds: float | None = None,
    tell: Tell = lambda what: None,
    show: Callable[[Report], None] = lambda report: None,
    *,
    search: bool = True,
) -> Report:
    """The report with what came of trying the fixes of its findings, those that may save most first.

    `request` is the one that the report is of. No experiment is begun after so many `seconds`. `tell` hears what is
    being tried, and `show` gets the report after each experiment. With `search` other requests are tried as well, and
    fixes that save nothing on top of better ones no longer help; without it, each finding's fixes by themselves.
    """
    if report.capture.failure is not None:
        return report
    report = _with_reasons(report)
    found = list(report.findings)
    lab = Lab(report, request, policy, usual_seconds(report) if seconds is None else seconds, tell)

    def now() -> Report:
        shown = (each for number, each in enumerate(found) if number not in lab.unseen or _helps(each))
        return settled(replace(report, findings=tuple(shown)))

    for number, position, fix in lab.outcomes(found, search=search):
        fixes = list(found[number].fixes)
        fixes[position] = fix
        found[number] = confirmed(replace(found[number], fixes=tuple(fixes)))
        show(now())
    if search:
        found[:] = lab.without_repetitions(found)
        report = replace(lab.checked(found), elsewhere=lab.elsewhere())
    return now()


def _queue(found: Sequence[Finding]) -> list[tuple[int, int]]:
    """The fixes to try, as numbers of a finding and a fix: each finding's first one before any second one."""
    places = []
    for number, each in enumerate(found):
        untried = [position for position, fix in enumerate(each.fixes) if fix.state == "untried"]
        cost = (each.severity != "error", -(each.expected[0] or 0), -(each.expected[1] or 0.0), number)
        places += [(turn, *cost, position) for turn, position in enumerate(untried)]
    return [(number, position) for *_, number, position in sorted(places)]


def _with_reasons(report: Report) -> Report:
    """The report with the reason in each fix that is not to be tried."""
    findings = tuple(
        replace(each, fixes=tuple(_with_reason(report, fix) for fix in each.fixes)) for each in report.findings
    )
    return replace(report, findings=findings)


def _with_reason(report: Report, fix: Fix) -> Fix:
    why = obstacle(report, fix.edits) if fix.edits and not fix.why else ""
    return replace(fix, why=why) if why else fix


class Lab:
    """Tries changes of one program, each once, some at a time, until the time is up.

    When candidates were priced, the best of all is tried even if that took all of the time.
    """

    def __init__(self, report: Report, request: Request, policy: Policy, seconds: float, tell: Tell) -> None:
        self._report, self._policy, self._tell = report, policy, tell
        self._deadline = time.monotonic() + seconds
        timeout = GRACE_S + max(seconds, MAX_TIMES * sum(report.capture.timings.values()))
        devices, chosen = devices_of(report.program, request), report.capture.chosen
        self._request = replace(request, timeout=timeout, devices=devices, program=chosen)
        self._known: dict[Edits, Future[_Tried | Experiment]] = {}
        self._running = Lock()
        self._compared_with: Report | None = None
        self.unseen: set[int] = set()
        """The findings that no rule has seen: shown once a fix of theirs helps."""

    def outcomes(self, found: list[Finding], *, search: bool = True) -> Iterator[tuple[int, int, Fix]]:
        """Yield each fix of some findings with what came of it, as it is known; findings of requests are added."""
        waiting: dict[Future[_Tried | Experiment], list[tuple[int, int]]] = {}
        unchanged: Future[Report] | None = None
        with ThreadPoolExecutor(MAX_AT_ONCE + 2) as pool:
            is_costly = measured(self._report).bytes != 0 or any(each.rule in WORK_RULES for each in found)
            is_wanted = search and self._policy.wants(RULE) and is_costly
            pricing = pool.submit(self._prices) if is_wanted else None
            _ = self._gentle, self._side  # before any thread asks for them
            if search:
                more = [each for each in rewrites(self._report) if self._policy.wants(each.rule)]
                self.unseen = set(range(len(found), len(found) + len(more)))
                found += more
            left, owed = _queue(found), 0
            while True:
                while left and len(waiting) < MAX_AT_ONCE and (self.has_time or owed > 0):
                    unchanged = unchanged or pool.submit(lambda: self._before)
                    if waiting and not unchanged.done():
                        break
                    owed -= 1
                    number, position = left.pop(0)
                    edits = found[number].fixes[position].edits
                    if found[number].severity == "error" and any(fix.helps for fix in found[number].fixes):
                        continue
                    if edits not in self._known:
                        self._tell(f"trying a change for {found[number].rule}")
                        self._known[edits] = pool.submit(self._tried, edits, found[number])
                    waiting.setdefault(self._known[edits], []).append((number, position))
                if not waiting and pricing is None:
                    for number, position in left:  # what was tried for another finding
                        same = self._known.get(found[number].fixes[position].edits)
                        if same is not None:
                            yield number, position, self._with_outcome(same.result(), found[number], position)
                    return
                begun: list[Future[Any]] = [each for each in (pricing, unchanged) if each is not None]
                known = [each for each in begun if each is pricing or not each.done()]
                done, _ = wait((*waiting, *known), return_when=FIRST_COMPLETED)
                if pricing in done and pricing is not None:
                    found[:] = with_suspects(found, self._report, pricing.result())
                    pricing = None
                    tried = {place for places in waiting.values() for place in places}
                    left, owed = [place for place in _queue(found) if place not in tried], MAX_AT_ONCE
                for each in [each for each in done if each in waiting]:
                    for number, position in waiting.pop(each):
                        yield number, position, self._with_outcome(each.result(), found[number], position)

    def _prices(self) -> Prices:
        self._tell("pricing other shardings")
        left = self._deadline - time.monotonic()
        return prices(self._report.program, self._request.python, left * PRICING_SHARE, measured(self._report).bytes)

    def elsewhere(self) -> Elsewhere | None:
        """Return what the unchanged program costs on another target, where a CPU's collectives are not all there."""
        return elsewhere(self._report, self._request)

    @property
    def has_time(self) -> bool:
        """True as long as experiments may be begun."""
        return time.monotonic() < self._deadline

    def without_repetitions(self, found: Sequence[Finding]) -> list[Finding]:
        """The findings, of which fixes that save nothing on top of better ones no longer help.

        Savings of alternatives are not sums: each fix is tried on top of the best ones. What several save together is a
        fix of the best one's finding. A fix of what was seen of memory stays one.
        """
        fixes = [
            (fix, number, position)
            for number, each in enumerate(found)
            if each.severity != "error"
            for position, fix in enumerate(each.fixes)
            if fix.helps and fix.experiment is not None
        ]
        fixes.sort(key=lambda each: (*_saving(each[0]), -each[1], -each[0].lines), reverse=True)
        taken: Edits = ()
        standing: set[Edits] = set()
        best: Experiment | None = None
        titles: list[str] = []
        changed = list(found)
        for fix, number, position in fixes:
            if best is None:
                taken, best, titles = fix.edits, fix.experiment, [fix.title]
                standing.add(fix.edits)
            if fix.edits in standing:
                continue
            rule = rule_of(found[number])
            if rule.is_observation and rule.saves == "memory":
                continue  # what devices hold is not what the better change spares
            both = tuple(dict.fromkeys((*taken, *fix.edits)))
            outcome = None if overlap(taken, fix.edits) else self._together(both, found[number])
            if outcome is not None and outcome.helps and _saving_of(outcome) > _saving_of(best):
                taken, best = both, outcome
                titles.append(fix.title)
                standing.add(fix.edits)
                continue
            is_same = best is not None and fix.experiment is not None and fix.experiment.after == best.after
            why = "it comes to the same as the fix" if is_same else "a better change is at the same place"
            if outcome is not None:
                why = "it saves nothing on top of a better change"
            repeated = replace(fix.experiment, state="not helping", why=why) if fix.experiment is not None else None
            mine = list(changed[number].fixes)
            mine[position] = replace(fix, experiment=repeated)
            changed[number] = replace(changed[number], fixes=tuple(mine))
        if len(titles) > 1:
            first = changed[fixes[0][1]]
            together = Fix("; ".join(titles), taken, experiment=best)
            changed[fixes[0][1]] = replace(first, fixes=(together, *first.fixes))
        return changed

    def _together(self, edits: Edits, found: Finding) -> Experiment:
        self._tell("trying changes together")
        return self._judged(self._tried(edits, found), found)

    def _tried(self, edits: Edits, found: Finding) -> _Tried | Experiment:
        with Scratch() as case:
            return self._tried_with(case, edits, found)

    def _with_outcome(self, done: _Tried | Experiment, found: Finding, position: int) -> Fix:
        outcome, fix = self._judged(done, found), found.fixes[position]
        is_there = found.confidence == "proved" and found.rule not in outcome.gone
        is_most = 2 * (outcome.bytes_saved or 0) >= (found.saved_bytes or math.inf)
        if (
            outcome.helps
            and is_there
            and not is_most
            and found.severity != "error"
            and not rule_of(found).is_observation
        ):
            fix = replace(fix, title=f"{fix.title}; it saves elsewhere, the finding stays")
        fix = replace(fix, experiment=outcome)
        return fix if isinstance(done, Experiment) else with_true_title(fix, self._side.specs, done.after.specs)

    def _judged(self, done: _Tried | Experiment, found: Finding) -> Experiment:
        """The verdict for a finding: of a change that does not trace it is that for all."""
        if isinstance(done, Experiment):
            return done
        verdict = judged(self._before, self._side, done.after, done.numbers, found)
        return replace(verdict, compared_by=done.by, is_next=done.is_next)

    def _tried_with(self, case: Path, edits: Edits, found: Finding) -> _Tried | Experiment:
        request = for_numbers(self._request, gentle=self._gentle)
        if self._is_small_and_elsewhere:
            request = replace(self._elsewhere, case=str(case))
        changed = captured_with(self._report.program, request, edits, self._may_help)
        if changed is None:
            return Experiment("does not trace", "the source is missing, or differs from what was captured")
        if changed.failure is not None:
            said = changed.failure.message.partition("\n")[0]
            why = f"the changed program stops while {PHASES[changed.failure.phase]}: {said}"
            return Experiment("untried" if changed.failure.kind == "died" else "does not trace", why)
        after, side = self._inspected(changed)
        is_other = draws_others(self._report.program, edits)
        unchanged = None if is_other else self._before.capture.execution
        numbers = compared(unchanged, changed.execution, _rounding(found), lambda: self._nudged)
        if numbers.values == "differ" and self._is_unstable:
            again = captured_with(self._report.program, replace(request, gentle=True), edits)
            numbers = compared(self._run_gently, None if again is None else again.execution, _rounding(found))
        done = _Tried(side, numbers)
        if side.cost.later > self._side.cost.later and self._may_help_next(side):
            done = self._in_the_next_step(request, edits, after, done)
        is_compared = is_other or numbers.values != "not compared" or not self._is_small_and_elsewhere
        if is_compared or not self._judged(done, found).helps:
            return done
        numbers, by = self._compared_here(edits, changed, case, _rounding(found))
        return done._replace(numbers=numbers, by=by)

    def _inspected(self, changed: Capture) -> tuple[Report, Side]:
        after = inspect(changed, self._policy)
        return after, Side.of(after, measured(after))

    def _may_help(self, compiled: Capture) -> bool:
        return may_help(self._side, self._inspected(compiled)[1])

    def _may_help_next(self, after: Side) -> bool:
        """Return whether a step takes its arguments as they come, and sends less for it."""
        is_taken_so = not has_keyword(self._report.program, "in_shardings")
        return is_taken_so and is_more(after.cost.bytes, self._side.cost.bytes)

    def _in_the_next_step(self, request: Request, edits: Edits, after: Report, done: _Tried) -> _Tried:
        """The same of the next step, the arguments of which are the results of this one, sharded as those are."""
        given = replace(request, shardings=received_next(after), live=False)
        changed = captured_with(self._report.program, given, edits)
        if changed is None or changed.failure is not None:
            return done
        return done._replace(after=self._inspected(changed)[1], is_next=True)

    @cached_property
    def _side(self) -> Side:
        return Side.of(self._report, measured(self._report))

    @property
    def _before(self) -> Report:
        """The report with the results that trials are compared with, which takes a run where they need other inputs."""
        with self._running:
            self._compared_with = self._compared_with or self._with_other_inputs()
            return self._compared_with

    def _with_other_inputs(self) -> Report:
        run = self._report.capture.execution
        if run is None or not run.outputs or (is_finite(run) and not self._gentle and not run.uniform_inputs):
            return self._report
        self._tell("running the unchanged program")
        again = last_capture(for_numbers(self._request, gentle=self._gentle))
        changed = replace(self._report.capture, execution=again.execution or run)
        return replace(self._report, program=self._report.program.grown(changed))

    @cached_property
    def _nudged(self) -> Execution | None:
        self._tell("running the unchanged program with rounded arguments")
        return last_capture(replace(for_numbers(self._request, gentle=self._gentle), nudged=True)).execution

    @cached_property
    def _is_unstable(self) -> bool:
        """True if synthetic inputs are such that results depend on rounding."""
        run = self._before.capture.execution
        return run is not None and run.seeded_inputs and not self._gentle and is_unstable(run, self._nudged)

    @cached_property
    def _run_gently(self) -> Execution | None:
        self._tell("running the unchanged program with other arguments")
        return last_capture(for_numbers(self._request, gentle=True)).execution

    def checked(self, found: Iterable[Finding]) -> Report:
        """The report, with the values that differ from those of one device, if a change of a request gave other ones.

        Requests change none, unless a shard_map takes its shape from them: the compiler may be at fault.
        """
        capture, jaxpr = self._report.capture, self._report.program.jaxpr
        is_doubtful = any(fix.state == "values differ" for each in found if each.rule == RULE for fix in each.fixes)
        is_short = sum(capture.timings.values()) <= MAX_SECONDS
        if not is_doubtful or not is_short or capture.execution is None or capture.reference is not None:
            return self._report
        if jaxpr is None or any(place.equation.shard_map is not None for place in jaxpr.equations):
            return self._report
        self._tell("comparing with a run on one device")
        compared = last_capture(replace(self._request, probe="none", reference=True)).reference
        if compared is None or not compared.differs:
            return self._report
        program = self._report.program.grown(replace(capture, reference=compared))
        return replace(self._report, program=program)

    @cached_property
    def _gentle(self) -> bool:
        """True if gentle inputs are needed for finite results."""
        run = self._report.capture.execution
        return run is not None and run.seeded_inputs and any(each.non_finite for each in run.outputs)

    @cached_property
    def _is_small_and_elsewhere(self) -> bool:
        """True of a program for other devices that is small enough to be evaluated, or to run on CPUs."""
        capture, cost = self._report.capture, self._report.cost
        memory, subject = capture.memory, capture.subject
        if not self._request.live or self._request.target == "cpu" or memory is None or cost is None or subject is None:
            return False
        size = (memory.arguments or 0) + (memory.outputs or 0) + (memory.temporaries or 0)
        return size * subject.device_count <= MAX_BYTES and cost.flops * subject.device_count <= MAX_FLOPS

    def _compared_here(
        self, edits: Edits, changed: Capture, case: Path, rounding: float
    ) -> tuple[Comparison, ComparedBy]:
        """Return whether the program gives the same numbers with some edits, and how that is known.

        Both programs for the target are evaluated; where that cannot be, both run on as many CPU devices.
        """
        self._tell("comparing its numbers")
        if self._evaluated is not None:
            after = evaluated_results(changed, case)
            if after is not None:
                return compared(self._evaluated, after, rounding), "evaluation"
        ran = captured_with(self._report.program, self._on_cpus, edits)
        return compared(self._unchanged_on_cpus, None if ran is None else ran.execution, rounding), "runs on CPUs"

    @cached_property
    def _elsewhere(self) -> Request:
        return replace(for_numbers(self._request, gentle=True), live=False)

    @cached_property
    def _evaluated(self) -> Execution | None:
        with Scratch() as case:
            unchanged = last_capture(replace(self._elsewhere, case=str(case)))
            return None if unchanged.failure is not None else evaluated_results(unchanged, case)

    @cached_property
    def _on_cpus(self) -> Request:
        subject = self._report.capture.subject
        devices = None if subject is None else subject.device_count
        return for_numbers(replace(self._request, target="cpu", devices=devices), gentle=True)

    @cached_property
    def _unchanged_on_cpus(self) -> Execution | None:
        return last_capture(self._on_cpus).execution


class _Tried(NamedTuple):
    """A change that was compiled, and its numbers beside those of the unchanged program."""

    after: Side
    numbers: Comparison
    by: ComparedBy = "run"
    is_next: bool = False


def _rounding(found: Finding) -> float:
    return ROUNDING["bf16"] if rule_of(found).narrows else 0.0


def _helps(found: Finding) -> bool:
    return any(fix.helps for fix in found.fixes)


def _saving(fix: Fix) -> tuple[float, float]:
    return _saving_of(fix.experiment)


def _saving_of(done: Experiment | None) -> tuple[float, float]:
    """The sorting key of savings: time on the target, then bytes, operations and memory."""
    return (0.0, 0.0) if done is None else (done.seconds_saved or 0.0, done.worth)
