"""Reasons of errors, and the edits with which a script runs; the next error after an edit is explained, too."""

from __future__ import annotations

import difflib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

from ...parsers.record import Record
from ..capture.model import Failure
from ..capture.protocol.events import StackFrame
from ..ir.program import file_on_disk
from ..report import Edit, Experiment, Explanation, Fix, Report, SourcePosition
from ..report.edits import applied
from .problem import Candidate, Problem, Reason
from .sizes import BATCH
from .table import reason_of
from .trying import Command, Run, Runner, Texts, differing

MAX_RUNS = 24
MAX_SECONDS = 150.0
MAX_LAST_SECONDS = 40.0
MAX_DEPTH = 4
"""Errors in a row, each of which an edit ends."""

MAX_CANDIDATES = (8, 3, 3, 2)
"""Edits that are tried for an error, by the number of errors before it."""

MAX_FOLLOWED = 4
MAX_GOOD = 3
MAX_IDEAS = 2


class _Solution(Record, frozen=True):
    """Edits with which the script runs."""

    candidates: tuple[Candidate, ...]
    texts: Texts
    run: Run


class Search:
    """Tries the edits for an error until the script runs with one."""

    def __init__(self, runner: Runner, script: str, tell: Callable[[str], None]) -> None:
        self._runner, self._script, self._tell = runner, script, tell
        self._until = time.monotonic() + MAX_SECONDS
        self._runs_left = 0
        self._seen: set[tuple[tuple[str, bytes], ...]] = {()}
        self.stopped: list[_Solution] = []
        """Edits that end an error, but with which the script meets one that is not known, or goes on for too long."""

    def solutions(self, problem: Problem, reason: Reason) -> Iterator[_Solution]:
        """Yield the edits with which it runs: single ones first, then several, and those that give up its mode last."""
        for is_last in (False, True):
            self._runs_left, self._until = MAX_RUNS, max(self._until, time.monotonic() + is_last * MAX_LAST_SECONDS)
            candidates = tuple(each for each in reason.candidates if each.is_last is is_last)
            yield from self._in_breadth(problem, replace(reason, candidates=candidates))

    def _in_breadth(self, problem: Problem, reason: Reason) -> Iterator[_Solution]:
        waiting: list[tuple[Problem, Reason, tuple[Candidate, ...]]] = [(problem, reason, ())]
        for depth in range(MAX_DEPTH):
            following: list[tuple[Problem, Reason, tuple[Candidate, ...]]] = []
            for here, why, before in waiting[:MAX_FOLLOWED]:
                for candidate, texts in islice(self._untried(here, why), MAX_CANDIDATES[depth]):
                    run, done = self._run(texts), (*before, candidate)
                    if run is None:
                        return
                    if not run.error:
                        yield _Solution(done, texts, run)
                    elif _is_another(here.run, run):
                        after = Problem(run, texts, self._script)
                        reason_after = reason_of(after)
                        if reason_after is None or not any(
                            each.edits and not each.is_last for each in reason_after.candidates
                        ):
                            self.stopped.append(_Solution(done, texts, run))
                        else:
                            following.append((after, reason_after, done))
            waiting = following

    def _untried(self, problem: Problem, reason: Reason) -> Iterator[tuple[Candidate, Texts]]:
        for candidate in reason.candidates:
            texts = None if candidate.is_last and problem.texts else changed(problem, candidate)
            key = tuple(sorted((texts or {}).items()))
            if texts is not None and key not in self._seen:
                self._seen.add(key)
                yield candidate, texts

    def _run(self, texts: Texts) -> Run | None:
        if not self._runs_left or time.monotonic() > self._until:
            return None
        self._runs_left -= 1
        self._tell("trying a change")
        return self._runner.run(texts)

    @cached_property
    def _script_text(self) -> str:
        source = file_on_disk(self._script)
        return "" if source is None else source.text()

    @cached_property
    def _original(self) -> Run:
        return self._runner.run({}, one=True)

    @cached_property
    def _unchecked(self) -> Run:
        return self._runner.run({}, unchecked=True)

    def trial(self, solution: _Solution) -> Experiment:
        """Compare the values of a run with edits with those of one device.

        What differs is compared with a run without checks, too: a body of shard_map may count its devices.
        """
        if all(each.is_spelling for each in solution.candidates):
            return Experiment("tried", "with other names for the same")
        is_other = any(each.is_other_data for each in solution.candidates)
        alone = self._runner.run(solution.texts, one=True)
        apart, compared = self._apart(solution, [alone, *([] if is_other else [self._original])])
        if not apart:
            why = "with other data, and gives what one device gives for it" if is_other else ""
            return Experiment("tried", why, values="close" if compared else "not compared")
        if "shard_map" in self._script_text and self._original.error and self._unchecked.error:
            return Experiment("tried", "and computes by device: there is no run on one device to compare it with")
        if not is_other and not self._unchecked.error:
            others, count = self._apart(solution, [self._unchecked])
            if count and not others:
                return Experiment("tried", "with the values that it has without checks of types", values="close")
        names = ", ".join(dict.fromkeys(name.partition(" ")[2] or name for name in apart[:3]))
        return Experiment("values differ", f"it runs, but has other values than one device: {names}", values="differ")

    @staticmethod
    def _apart(solution: _Solution, references: list[Run]) -> tuple[list[str], int]:
        """The values that differ from those of runs that came to their end, and how many were compared."""
        found = [differing(run.values, solution.run.values) for run in references if not run.error]
        return [name for names, _ in found for name in names], sum(count for _, count in found)


def _is_another(one: Run, other: Run) -> bool:
    """Return whether an error is a different one: of another text, or at another place."""
    is_other = (one.said, _line(one.stack)) != (other.said, _line(other.stack))
    return is_other and other.error != "SyntaxError"


def _line(stack: Sequence[StackFrame]) -> list[tuple[str, int]]:
    return [(frame.file, frame.line) for frame in stack[:1]]


def changed(problem: Problem, candidate: Candidate) -> Texts | None:
    """The texts of a run with an edit more; None where it cannot be made."""
    if not candidate.edits:
        return None
    files = {edit.file: problem.source(edit.file) for edit in candidate.edits}
    texts = dict(problem.texts)
    for file, source in files.items():
        text = None if source is None else applied(source, [edit for edit in candidate.edits if edit.file == file])
        if text is None or source is None or text == source.data:
            return None
        texts[file] = text
    return texts


def explained_run(
    command: Command,
    failure: Failure | None = None,
    tell: Callable[[str], None] = lambda what: None,
    unchecked: Callable[[], Report | None] = lambda: None,
) -> Explanation | None:
    """Explanation of why a command fails; None where it does not fail again, or no row knows the error.

    The `failure` tells whether the script, or the function of a request, is what fails.
    """
    kinds = [command, *([replace(command, request="")] if command.request else ())]
    for kind in kinds:
        with Runner(kind) as runner:
            tell("running it again")
            run = runner.run({})
            if not run.error or not _is_same(run, failure, is_last=kind is kinds[-1]):
                continue
            problem = Problem(run, {}, kind.script)
            reason = reason_of(problem, unchecked)
            if reason is None:
                return None
            search = Search(runner, kind.script, tell)
            fixes = tuple(_fixes(search, problem, reason))
            where = reason.where or _place_of_edits(problem.place, fixes)
            return Explanation(reason.title, reason.steps, fixes, where=where, argument=reason.argument)
    return None


def _place_of_edits(place: SourcePosition, fixes: tuple[Fix, ...]) -> SourcePosition:
    """The position, from the caller on where a fix edits the call of a helper."""
    lines = {(edit.file, edit.line) for fix in fixes[:1] if fix.helps for edit in fix.edits}
    for number, frame in enumerate(place.stack):
        if lines & {(frame.file, line) for line in range(frame.line, max(frame.line, frame.end_line) + 1)}:
            return SourcePosition.exact(place.stack[number:])
    return place


def _is_same(run: Run, failure: Failure | None, *, is_last: bool) -> bool:
    """Return whether a run fails as a capture did; in the last kind of run an error of its class on its line does."""
    if failure is None or not failure.said or _words(failure.said) == _words(run.said):
        return True
    return is_last and (failure.type, _line(failure.stack)) == (run.error, _line(run.stack))


def _words(said: str) -> list[str]:
    """The words of the first line, in one order: JAX prints sets, whose order is another one in each process."""
    return sorted(re.findall(r"\w+", said.partition("\n")[0]))


def _fixes(search: Search, problem: Problem, reason: Reason) -> Iterator[Fix]:
    wanted = {axis for axis in {*problem.run.axes, *_spec_axes(problem)} if BATCH.match(axis)}
    wanted &= {name for mesh in problem.meshes() for name, _ in mesh.mesh}
    good: list[tuple[tuple[bool, ...], Fix]] = []
    refused: list[Fix] = []
    for solution in search.solutions(problem, reason):
        trial = search.trial(solution)
        fix = _fix(problem, solution, trial)
        if not trial.helps:
            refused.append(fix)
            continue
        is_whole = bool(wanted) and not wanted & solution.run.axes
        if is_whole and any(each.is_split for each in solution.candidates):
            continue  # no batch was sharded
        is_other = any(each.is_other_data for each in solution.candidates)
        is_fewer = any(each.is_fewer for each in solution.candidates)
        good.append(((is_whole, is_fewer, is_other), fix))
        if not (is_whole or is_fewer or is_other) or len(good) == MAX_GOOD:
            break
    good.sort(key=lambda each: each[0])
    yield from (fix for _, fix in good)
    here = _line(problem.stack)
    if not good and search.stopped:
        refused.insert(0, _stopped(problem, max(search.stopped, key=lambda each: _line(each.run.stack) != here)))
    yield from refused
    titles = {fix.title for fix in (*refused, *(fix for _, fix in good))}
    ideas = dict.fromkeys(each.title for each in reason.candidates if each.title not in titles)
    yield from (Fix(title) for title in list(ideas)[: 0 if good else MAX_IDEAS])


def _fix(problem: Problem, solution: _Solution, trial: Experiment) -> Fix:
    title = "; then ".join(dict.fromkeys(each.title for each in solution.candidates))
    return Fix(title, edits_between(problem, solution), trial)


def _stopped(problem: Problem, solution: _Solution) -> Fix:
    """Edits with which a script goes on, to an error that is not known, or for longer than it may."""
    run = solution.run
    if run.error == "timeout":
        return _fix(problem, solution, Experiment("untried", f"it ends this error; the script then {run.said}"))
    where = f", {os.path.basename(run.stack[0].file)}:{run.stack[0].line}" if run.stack else ""
    why = f"it ends this error; the next one is {run.error}: {run.said.partition(chr(10))[0]}{where}"
    return _fix(problem, solution, Experiment("does not trace", why))


def _spec_axes(problem: Problem) -> set[str]:
    return {
        axis for spec in re.findall(r"P(?:artitionSpec)?\((.*?)\)", problem.said) for axis in re.findall(r"\w+", spec)
    }


def edits_between(problem: Problem, solution: _Solution) -> tuple[Edit, ...]:
    """The edits from the user's files to the texts of a solution."""
    if len(solution.candidates) == 1:
        return solution.candidates[0].edits
    found: list[Edit] = []
    for file, text in solution.texts.items():
        source = problem.source(file)
        found += [] if source is None else _line_edits(file, source.data, text)
    return tuple(found)


def _line_edits(file: str, before: bytes, after: bytes) -> Iterator[Edit]:
    one, other = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (before, after))
    for kind, start, end, first, last in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind != "equal":
            yield Edit(file, start + 1, 0, end_line=end + 1, end_column=0, text="".join(other[first:last]))
