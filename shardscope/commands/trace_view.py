"""The list of a trace's programs, or the report of one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event

from shardscope.commands.job import Job
from shardscope.commands.output import after_screen, write_rendered, write_report, write_stage
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import Capture, CaptureError, Message
from shardscope.inspector.capture.protocol.events import Progress
from shardscope.inspector.capture.scratch import Scratch
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.printable import printable
from shardscope.inspector.render.renderers import formats, renderer
from shardscope.inspector.report import Report
from shardscope.inspector.traces.propagated import capture_of
from shardscope.inspector.traces.trace import Program, Trace

Again = Callable[[Path, str, Event], Trace]
"""Runs the command once more into a folder, until the program of this id is lowered; ends early at the event."""


def show(
    trace: Trace,
    wanted: str | None,
    job: Job,
    *,
    python: str | None = None,
    foreign: bool = True,
    again: Again | None = None,
    improve: Callable[[Report, Program], Report] = lambda report, program: report,
) -> ExitCode:
    """Show the list, or the full report of one program: of several that are wanted what communicates most.

    A trace is `foreign` unless this process has made it. `improve` adds to a report that is written.
    """
    output = job.output
    if wanted is None and output.format == "tui":
        from shardscope.tui.app import show_trace

        show_trace(trace, lambda program: Captures(program, python, foreign, again), job.policy)
        return ExitCode.DONE
    if wanted is None:
        if output.stage is not None:
            raise CaptureError("--stage needs one program: name it")
        if output.format not in formats("trace"):
            raise CaptureError(f"a list of programs is shown as {' or '.join(formats('trace'))}; or name one program")
        write_rendered(renderer(output.format, "trace")[1], trace, output)
        return ExitCode.DONE
    shown, *others = _matching(trace, wanted)
    if others:
        names = ", ".join(trace.id_of(program) for program in others)
        print(printable(f"shardscope: showing {trace.id_of(shown)}; others: {names}"), file=sys.stderr)
    capture = replace(capture_of(shown, python), foreign=foreign)
    if output.stage is not None:
        return write_stage(capture, output)
    if output.format == "tui":
        from shardscope.tui.app import show as show_capture

        show_capture(capture, job.policy)
        return after_screen(capture)
    report = improve(inspect(capture, job.policy), shown)
    return job.status(write_report(report, output), report)


@dataclass
class Captures:
    """Captures of a program: what was recorded, then, where stages are missing, what a second run gives."""

    program: Program
    python: str | None
    foreign: bool
    again: Again | None
    _cancelled: Event = field(default_factory=Event)

    def __iter__(self) -> Iterator[Capture]:
        recorded = replace(capture_of(self.program, self.python), foreign=self.foreign)
        if self.program.compiled.captured == "full" or self.again is None:
            yield recorded
            return
        yield replace(recorded, complete=False, progress=Progress("trace", 0.0))
        with Scratch() as folder:
            trace = self.again(folder, self.program.compiled.id, self._cancelled)
            full = [each for each in trace.programs if each.compiled.captured == "full"]
            if full:
                yield replace(capture_of(full[0], self.python), foreign=self.foreign)
            elif not self._cancelled.is_set():
                text = "stages are missing: the script ran again, but did not compile this program"
                yield replace(recorded, messages=(*recorded.messages, Message("warning", text, "run")))

    def cancel(self) -> None:
        """End the second run."""
        self._cancelled.set()


def _matching(trace: Trace, wanted: str) -> Sequence[Program]:
    """The programs that are captured, and whose name or id is wanted; those in full before the others."""
    found = [
        program
        for program in trace.merged
        if program.path is not None
        and any(fnmatchcase(name, wanted) for name in (trace.id_of(program), *_names(program)))
    ]
    if not found:
        names = list(dict.fromkeys(program.compiled.name for program in trace.programs if not program.is_helper))
        near = get_close_matches(wanted, names, n=3) or names[:8]
        known = f"; compiled programs: {', '.join(near)}" if near else "; JAX compiled no program for the script"
        raise CaptureError(f"no program matches {wanted!r}{known}")
    return sorted(found, key=lambda program: program.compiled.captured != "full")


def _names(program: Program) -> Sequence[str]:
    return program.compiled.id, program.compiled.name
