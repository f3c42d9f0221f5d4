"""Output of `run`: the screen, or a report in some format."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from shardscope.commands.capturing import watched
from shardscope.commands.job import Job
from shardscope.commands.output import (
    after_screen,
    prepare_output,
    reported_last,
    write_beginning,
    write_comparison,
    write_extract,
    write_report,
)
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.again import saved
from shardscope.inspector.capture.file import save
from shardscope.inspector.capture.model import Capture, CaptureError
from shardscope.inspector.capture.propagation import is_explained
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import CaptureHandle
from shardscope.inspector.findings.kept import kept
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report
from shardscope.inspector.report.position import place_of
from shardscope.terminal import progress, say


def one(begun: CaptureHandle, job: Job) -> ExitCode:
    """Show one capture, keep it if that is wanted, and return how it went."""
    began, output = time.time(), job.output
    if output.is_extract:
        last = watched(begun, quiet=output.quiet)
        with ExitStack() as stack:
            _keep(last, begun.request, job.save, stack)
            return write_extract(last, output)
    if output.format == "tui":
        from shardscope.inspector.on_screen import analyses
        from shardscope.inspector.trace_errors.explain import explained_or_tried
        from shardscope.tui.app import show_live

        improve = partial(explained_or_tried, policy=job.policy, seconds=job.seconds)
        last, shown = show_live(begun, analyses(job.policy), improve, watch=job.watch)
    else:
        program, beginning = _analyzed(begun, job)
        last = program.capture
    with ExitStack() as stack:
        _keep(last, begun.request, job.save, stack)
        if output.format == "tui":
            if shown is not None:
                _keep(last, begun.request, job.save, stack, shown)
            return after_screen(last)
        report = _report(program, begun.request, job)
        _keep(last, begun.request, job.save, stack, report)
        code = job.status(write_report(report, output, beginning), report)
        if job.watch:
            _watch(report, begun.request, began, job)
        return code


def _watch(shown: Report, request: Request, began: float, job: Job) -> NoReturn:
    """Write the report again whenever a file of the program is saved, until a signal comes.

    While the program is broken, the report before stays the last one.
    """
    from shardscope.inspector.diff.diff import diff
    from shardscope.inspector.render.headline import headline
    from shardscope.tui.edit_loop import PERIOD_S, EditLoop, files_of

    loop = EditLoop(request, began=began)
    loop.learn(shown.capture, files_of(shown))
    while True:
        while loop.changed() is None:
            time.sleep(PERIOD_S)
        capture = watched(loop.begin(), quiet=job.output.quiet)
        loop.learn(capture)
        if capture.failure is not None and shown.capture.complete:
            said = ": ".join(filter(None, (place_of(capture.failure).text(), capture.failure.message)))
            say(f"shardscope: {said}\nshardscope: stale: the report before the edit")
            continue
        report = _report(capture, request, job)
        write_report(report, job.output)
        loop.learn(capture, files_of(report))
        with suppress(CaptureError):  # they have no stage in common
            say(f"shardscope: since the run before: {headline(diff(shown, report))}")
        shown = report


def _analyzed(begun: CaptureHandle, job: Job) -> tuple[Program, Report | None]:
    """Capture a program, and analyze much of it while the compiler and the function still run.

    The report is that of the compiled program, whose beginning was written before the function was run; None where it
    was not.
    """
    program, report, output = Program(Capture()), None, job.output
    is_shown = output.format == "text" and output.file is None
    prepare_output(output.format)

    def grows(capture: Capture) -> bool:
        is_compiling = capture.progress is not None and capture.progress.phase == "compile"
        is_more = len(capture.stages) > len(program.stages) and capture.stage("hlo") is None
        return _runs(capture) or (is_compiling and is_more)

    while not _runs(program.capture):
        program = program.grown(watched(begun, quiet=output.quiet, until=grows))
        if program.capture.complete or program.capture.failure is not None:
            return program, None
        with progress("analyzing", quiet=output.quiet):
            report = inspect(program, job.policy)
    if is_shown and report is not None:
        write_beginning(report, output)
    return program.grown(watched(begun, quiet=output.quiet)), report if is_shown else None


def _runs(capture: Capture) -> bool:
    """Return whether the compiled program is running, so that nothing more will be known of its compilation."""
    return capture.progress is not None and capture.progress.phase == "run" and is_explained(capture)


def several(captures: Iterable[CaptureHandle], job: Job) -> ExitCode:
    """Show one capture for each target, their collectives side by side; without a screen, one after the other."""
    is_on_screen = job.output.format == "tui"
    if is_on_screen:
        from shardscope.inspector.on_screen import analyses
        from shardscope.tui.app import show_targets

        at_once = list(captures)
        shown = show_targets(at_once, analyses(job.policy))
        done = [(begun.request, last) for begun, last in zip(at_once, shown, strict=True)]
    else:
        done = [(begun.request, watched(begun, quiet=job.output.quiet)) for begun in captures]
    with ExitStack() as stack:
        paths = [_path_for(request.target, job.save) for request, _ in done]
        for path, (request, last) in zip(paths, done, strict=True):
            _keep(last, request, path, stack)
        if is_on_screen:
            return ExitCode.DONE
        reports = tuple(_report(last, request, job) for request, last in done)
        for path, (request, _), report in zip(paths, done, reports, strict=True):
            _keep(report.capture, request, path, stack, report)
        from shardscope.inspector.diff.targets import compare

        comparison = compare(tuple(request.target for request, _ in done), reports)
        code = write_comparison(comparison, job.output)
        return max(job.status(code, report) for report in reports)


def _path_for(target: str, save: str | None) -> Path | None:
    path = None if save is None else Path(save)
    return None if path is None else path.with_stem(f"{path.stem}.{re.sub(r'[^A-Za-z0-9]+', '-', target)}")


def _keep(
    last: Capture, request: Request, path: str | Path | None, stack: ExitStack, report: Report | None = None
) -> None:
    """Save a capture; once more with what came of the fixes in its report, if any was tried."""
    tried = b"" if report is None else kept(report)
    if path is not None and last.subject is not None and (report is None or tried):
        with reported_last(stack):
            save(replace(last, tried=tried, request=saved(last, request)), path)


def _report(last: Capture | Program, request: Request, job: Job) -> Report:
    with progress("analyzing", quiet=job.output.quiet) as tell:
        report = inspect(last, job.policy)
        if job.seconds == 0:
            return report
        # What explains a failure and tries fixes takes long to import, and few captures need it.
        from shardscope.inspector.trace_errors.explain import explained_or_tried

        return explained_or_tried(report, request, job.policy, seconds=job.seconds, tell=tell)
