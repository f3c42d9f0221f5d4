"""Run a script as it is, and list every program that JAX compiles.

The script runs unmodified, with its own arguments, working directory, environment, input and output. The list is ranked
by what the programs communicate in all of their calls; --match shows the full report of one of them.

  shardscope trace train.py --lr 0.1
  shardscope trace --match train_step --devices 8 train.py --layers 4
  shardscope trace -m package.train
  shardscope trace -- torchrun train.py

Options of shardscope come before the script.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from threading import Event

from shardscope.commands.job import Job, job_of, present
from shardscope.commands.output import add_finding_options, add_output_options, add_try_option, write_rendered
from shardscope.commands.tracing import (
    add_command,
    add_recording_options,
    command_of,
    folder_of,
    recorded_of,
    traced_as_processes,
    traced_with_enough_devices,
)
from shardscope.configuration import configuration_above
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.environment import user_devices
from shardscope.inspector.capture.model import Capture, CaptureError, Message
from shardscope.inspector.capture.protocol.events import Progress
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.scratch import Scratch
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.capture.tracing import run_traced
from shardscope.inspector.findings.kept import kept
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.printable import printable
from shardscope.inspector.render.renderers import formats, renderer
from shardscope.inspector.report import Report
from shardscope.inspector.report.traces import Program, Trace
from shardscope.inspector.traces.read import capture_of, keep_propagated, read_trace
from shardscope.terminal import progress


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    one = "report this program in full: an id of the list, or step*"
    add_recording_options(parser, one, "run as N processes of jax.distributed")
    parser.add_argument(
        "--target", metavar="TARGET", help="compile the program for this target; the script runs on fake devices"
    )
    parser.add_argument("--abstract", action="store_true", help="do not allocate large arrays, nor compute with them")
    parser.add_argument(
        "--no-explain", action="store_true", help="do not run a script that fails again, with edits, to explain why"
    )
    add_try_option(parser, "with --match: run the script again, with changes, for so long (default: 0, for none)", 0)
    add_output_options(parser, "report", "reports", "trace")
    add_finding_options(parser)
    add_command(parser)


def run(options: argparse.Namespace) -> int:
    """Run the script, and show what was recorded."""
    command = command_of(options)
    is_local = options.devices is None and options.processes is None and not options.abstract
    target = options.target or ("local" if is_local else "cpu")
    recorded = recorded_of(options, target, abstract=options.abstract)
    job = job_of(options, configuration_above(Path()))
    with folder_of(options.folder) as folder:
        stdout = sys.stderr.buffer if job.output.is_document else None
        if options.processes is not None:
            trace = traced_as_processes(
                command, folder, recorded, options.processes, options.devices, stdout, quiet=options.quiet
            )
        else:
            may_repeat = options.devices is None and options.target is None and user_devices(os.environ) is None
            first = replace(recorded, may_repeat=may_repeat)
            trace = traced_with_enough_devices(command, folder, first, options.devices, stdout, quiet=options.quiet)
        if options.folder is not None:
            keep_propagated(trace, command[0])
        if trace.status and options.match is None and not options.no_explain:
            from shardscope.inspector.trace_errors.explain import explained_trace

            with progress("explaining the error", quiet=options.quiet) as tell:
                trace = explained_trace(trace, options.devices, tell)
        again = _again(command, recorded, trace) if options.processes is None else None
        improve = partial(_improved, command=command, trace=trace, target=options.target, job=job)
        code = show(trace, options.match, job, python=command[0], foreign=False, again=again, improve=improve)
        return _status(trace) or code


def _again(command: Sequence[str], recorded: TraceOptions, trace: Trace) -> Again:
    """Return what runs the command once more, on the devices that it had, without input and output."""

    backend = next((each.backend for each in trace.processes if each.backend is not None), None)
    count = None if backend is None or backend.platform != "cpu" else backend.device_count
    if recorded.target == "local" and count not in (None, 1, user_devices(os.environ)):
        recorded = replace(recorded, target="cpu")  # it ran on fakes, for want of devices

    def run_again(folder: Path, program: str, cancelled: Event) -> Trace:
        wanted = replace(recorded, match=program, run=False, steps=None)
        run_traced(command, folder, wanted, count, cancelled=cancelled)
        return read_trace(folder, command)

    return run_again


def _improved(
    report: Report, program: Program, *, command: Sequence[str], trace: Trace, target: str | None, job: Job
) -> Report:
    """The report with what came of trying changes of the program, which is captured once more for that.

    Nothing is tried where there is no time for it, where the command is no script that runs as one process, and where
    the program then communicates otherwise: it is another one.
    """
    if not job.seconds or len(trace.processes) > 1 or not command[1:] or not os.path.isfile(command[1]):
        return report
    from shardscope.inspector.experiments.lab import tried
    from shardscope.inspector.experiments.measured import measured

    name, subject = program.compiled.name, report.capture.subject
    before = [each for each in trace.programs if each.compiled.name == name]
    request = Request(
        command[1],
        program=(name, before.index(program)),
        devices=None if subject is None or target is not None else subject.device_count,
        target=target or "cpu",
        python=command[0],
        argv=tuple(command[2:]),
    )
    with progress("trying changes", quiet=job.output.quiet) as tell:
        again = inspect(last_capture(request), job.policy)
        if again.capture.failure is not None or measured(again).collectives != measured(report).collectives:
            return report
        found = kept(tried(again, request, job.policy, job.seconds, tell))
    return inspect(report.program.grown(replace(report.capture, tried=found)), job.policy)


def _status(trace: Trace) -> int:
    status = trace.status or 0
    if any(process.stopped for process in trace.processes):
        return 0
    return status if status >= 0 else 128 - status


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
        from shardscope.inspector.on_screen import analyses
        from shardscope.tui.app import show_trace

        show_trace(trace, lambda program: Captures(program, python, foreign, again=again), analyses(job.policy))
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
    return present(capture, job, lambda report: improve(report, shown))


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
        and any(
            fnmatchcase(name, wanted) for name in (trace.id_of(program), program.compiled.id, program.compiled.name)
        )
    ]
    if not found:
        names = list(dict.fromkeys(program.compiled.name for program in trace.programs if not program.is_helper))
        near = get_close_matches(wanted, names, n=3) or names[:8]
        known = f"; compiled programs: {', '.join(near)}" if near else "; JAX compiled no program for the script"
        raise CaptureError(f"no program matches {wanted!r}{known}")
    return sorted(found, key=lambda program: program.compiled.captured != "full")
