"""One capturing process with one number of devices: what arrives from it becomes a growing Capture."""

from __future__ import annotations

import json
import os
import queue
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ..targets.target import Target, topology_of
from . import endings
from .children import Children
from .endings import Ending
from .environment import child_environment
from .events import decode, fold
from .model import Capture, CaptureError, has_mesh
from .passes import in_workspace
from .process import Process, evaluated
from .propagation import TIMEOUT_S, Propagated, Propagation, with_propagation
from .protocol import bootstrap
from .protocol.case import PROGRAM
from .protocol.events import WAITS, Devices, End, Event, Failure, Hello, Message, Progress, Stage
from .protocol.request import Request
from .protocol.wire import Frame
from .protocol.workspace import (
    COMPILER_LOG,
    DUMP,
    MAX_OWN,
    WAITING,
    find_propagation,
    find_stages,
    read_messages,
    read_stages,
)
from .scratch import Scratch
from .warm import TOO_LATE, WARMTH

SLOWEST_START = 60.0
"""Seconds in which an interpreter must say that it is one."""

PEEK = 0.1
"""Seconds between two looks at what the compiler has written."""

WAITING_S = 20.0
"""Seconds in which a program whose devices wait is evaluated."""

OLDEST_PYTHON = (3, 11)

UNFIT = (FileNotFoundError, NotADirectoryError, PermissionError, ValueError)
"""Errors of `--python` itself; others are those of a system that lacks something."""

Ended = Ending | OSError | ValueError | RuntimeError
Arriving = Frame | Propagated | Ended


class Attempt:
    """Runs one capturing process, and beside it the propagation that tells origins.

    `devices` is the number of fake devices, None to leave it alone; `negotiable` whether another number may be tried.
    `wanted` is set when the process found that it needs another number of devices, or may need it (`is_tried`),
    `is_too_late` when it was forked, and its script changes the environment before it imports JAX.
    """

    def __init__(
        self, request: Request, target: Target, devices: int | None, negotiable: bool, deadline: float | None
    ) -> None:
        self.wanted: int | None = None
        self.is_tried = False
        self.is_too_late = False
        topology = topology_of(target)
        self.request = replace(
            request,
            chosen=devices if negotiable and devices is not None else 0,
            topology="" if topology is None else json.dumps(topology),
            compiled=str(WARMTH.compiled.path) if request.is_trial else "",
        )
        self._deadline = deadline
        self._python = request.python or sys.executable
        self._version: str | None = None
        self._arriving: queue.SimpleQueue[Arriving] = queue.SimpleQueue()
        self._scratch = Scratch()
        self._workspace = self._scratch.path
        self._environment = child_environment(os.environ, target, devices)
        self._children = Children()
        self._process = Process(
            self._children, self._command, self._environment, request.directory, self._arriving.put, request.stdin
        )
        self._propagation: Propagation | None = None
        self._growing = Capture(progress=Progress("start", 0.0))
        self._end: End | None = None
        self._ending: Ended | None = None
        self._pending = False
        self._stablehlo: bytes | None = None
        self._late = False
        self._sizes: dict[str, int] = {}

    def kill(self) -> None:
        """End its processes; what arrived before is not lost. May be called from any thread."""
        self._children.kill()

    def captures(self) -> Generator[Capture, None, None]:
        """The growing Capture, until it is complete or failed."""
        try:
            while self._ending is None or self._pending:
                yield self._growing
                self._receive()
            yield self._finished(self._ending)
        except CaptureError as error:
            yield replace(self._growing, failure=Failure("died", str(error), "start"), progress=None)
        finally:
            self._children.kill()
            if self._propagation is not None:
                self._propagation.stop()
            self._process.join()
            self._children.close()
            self._scratch.remove()

    def _command(self, descriptor: int) -> list[str]:
        arguments = (str(self._workspace), str(descriptor), self.request.encode())
        return bootstrap.command(self._python, "main", *arguments, hello=str(descriptor))

    def _receive(self) -> None:
        patience = self._patience()
        compiling = self._growing.progress is not None and self._growing.progress.phase == "compile"
        compiling &= self._growing.stage("hlo-spmd") is None  # behind it, XLA writes nothing that is looked for
        try:
            item = self._arriving.get(timeout=min(PEEK, patience or PEEK) if compiling else patience)
        except queue.Empty:
            if compiling and (patience is None or patience > PEEK):
                self._peek()
                return
            if patience == TIMEOUT_S:
                self._process.interrupt()  # another process tries it next
                return
            self._late = True
            self._pending = False
            self._process.interrupt()
            return
        match item:
            case Frame():
                self._take(decode(item))
            case Propagated():
                self._pending = False
                self._growing = with_propagation(self._growing, item)
            case _:
                self._ending = item
                self._propagate()

    def _propagate(self) -> None:
        """Have the origins of shardings found, once: in XLA's own propagation, if it is there, or in the StableHLO."""
        if self._stablehlo is None or (self._ending is None and self._is_own(self._stablehlo)):
            return
        self._begin_propagation().submit(self._stablehlo, find_propagation(str(self._workspace / DUMP)))
        self._stablehlo = None

    def _begin_propagation(self) -> Propagation:
        ready = (self._children, self._python, self._environment, self._workspace, self._arriving.put)
        self._propagation = self._propagation or Propagation(*ready)
        return self._propagation

    def _is_own(self, stablehlo: bytes) -> bool:
        """Return whether the capturing process finds the origins itself, at its end, when nothing is lost with it."""
        return not self.request.live and len(stablehlo) <= MAX_OWN

    def _take(self, event: Event | None) -> None:
        match event:
            case Stage(name="sdy") if self._end is not None:
                self._stablehlo, self._pending = None, False
            case Stage(name="sdy") if self._pending or self._growing.stage("sdy"):
                self._propagate()
                return
            case End(since):
                self._propagate()
                self._end = event
                event = Progress("propagation", since)
            case Hello(python):
                self._version = python
            case Devices(wanted, is_tried):
                self.wanted, self.is_tried = wanted, is_tried
            case Stage(name="stablehlo", text=text) if has_mesh(text):
                self._stablehlo, self._pending = text, True
                if not self._is_own(text):
                    self._begin_propagation()
        self._growing = fold(self._growing, event)
        if self.request.passes and isinstance(event, Stage) and event.name == "hlo":
            found = in_workspace(self._workspace / DUMP, every=self.request.passes == "all")
            messages = (*self._growing.messages, *found.messages)
            self._growing = replace(self._growing, passes=found.kept, messages=messages)

    def _peek(self) -> None:
        """Take in what the compiler has written while it goes on: the stages that did not grow since the last look."""
        for name, path in find_stages(str(self._workspace / DUMP)).items():
            size = path.stat().st_size
            if self._sizes.get(name) == size > 0:
                if name == "hlo-before":  # written behind Shardy, as are its modules
                    self._propagate()
                if name != "sdy" and self._growing.stage(name) is None:
                    self._growing = fold(self._growing, Stage(name, text=path.read_bytes()))
            self._sizes[name] = size

    def _patience(self) -> float | None:
        """Seconds for which the next thing may be waited for; None for as long as it takes."""
        if self._late:
            return None
        start = SLOWEST_START if self._version is None else None
        start = TIMEOUT_S if self._end is not None and self._stablehlo is not None else start
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        return min((seconds for seconds in (start, left) if seconds is not None), default=None)

    def _finished(self, ending: Ended) -> Capture:
        """The last Capture: with what was printed, and, if the process did not say so itself, why it ended."""
        growing = self._growing if self._end is None else fold(self._growing, self._end)
        if not isinstance(ending, Ending):
            reason = getattr(ending, "strerror", None) or str(ending)
            where = getattr(ending, "filename", None) or self._python
            kind: Literal["usage", "died"] = "usage" if isinstance(ending, UNFIT) else "died"
            return replace(growing, failure=Failure(kind, f"cannot run {where}: {reason}", "start"), progress=None)
        stdout, stderr = (printed.decode("utf-8", "replace") for printed in (ending.stdout, ending.stderr))
        growing = replace(growing, stdout=stdout, stderr=stderr)
        self.is_too_late = ending.status == TOO_LATE and self._process.is_warm
        if growing.failure is not None:
            found = growing.failure
            found = self._where_devices_wait(found) if found.type == WAITS else endings.exited(found, ending)
            return replace(growing, failure=found)
        if growing.complete:
            return growing
        if growing.progress is not None and growing.progress.phase == "probe":
            return _without_probes(growing, self._why(ending, growing))
        growing = _salvaged(growing, self._workspace)
        return replace(growing, failure=self._why(ending, growing), progress=None)

    def _where_devices_wait(self, failure: Failure) -> Failure:
        """The failure with the line on which each device stands, as an evaluation in lock-step has it."""
        folder = self._workspace / WAITING
        if not (folder / PROGRAM).exists():
            return failure
        found, _ = evaluated(folder, WAITING_S, self._children, values=False)
        if found.stands:
            return replace(failure, message=f"{failure.message}: {found.stands}")
        return replace(failure, details=f"On which lines is not known: {found.reason}")

    def _why(self, ending: Ending, growing: Capture) -> Failure:
        phase = growing.progress.phase if growing.progress else "start"
        if self._version is None:
            return endings.no_python(self._python, ending)
        if tuple(map(int, self._version.split("."))) < OLDEST_PYTHON:
            return endings.old_python(self._python, self._version)
        if self._late and self.request.timeout is not None:
            return endings.timed_out(self.request.timeout, phase, ending, self._workspace)
        return endings.died(phase, ending, self._workspace)


def _without_probes(growing: Capture, why: Failure) -> Capture:
    """Complete, as everything else was done when the program that looks at values ended the process."""
    text = f"values inside the program are incomplete: {why.message}"
    messages = (*growing.messages, Message("warning", text, "probe"))
    return replace(growing, messages=messages, progress=None, complete=True)


def _salvaged(growing: Capture, workspace: Path) -> Capture:
    """With the stages and messages that a compiler had written before it died, but that were never sent."""
    for name, text in read_stages(str(workspace / DUMP)).items():
        if growing.stage(name) is None:
            growing = fold(growing, Stage(name, text=text))
    phase = growing.progress.phase if growing.progress else "compile"
    for message in read_messages(workspace / COMPILER_LOG, phase):
        growing = fold(growing, message)
    return growing
