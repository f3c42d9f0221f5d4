"""The `sdy` stage: what XLA's own propagation gives, with origins, in a process beside the capturing one.

`worker/provenance.py` says why. The process is started while XLA compiles, so that it is ready when that has
propagated; where it dies, it is started again and asked for less. A capturing process that does not run its program
does the same at its end (`worker/main.py`): then the other is needed only if that fails. Without XLA's dump it
propagates the StableHLO, and the capture says so.
"""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...parsers.record import Record
from .child import Child
from .children import Children
from .events import fold
from .model import Capture, has_mesh
from .protocol import bootstrap
from .protocol.events import Message, Stage
from .protocol.workspace import SOURCE
from .scratch import Scratch
from .warm import WARMTH

TIMEOUT_S = 120.0
"""Seconds that one run may take."""

WISHES = {
    "origins steps": "",
    "steps": "the origins of shardings",
    "": "the origins of shardings and the steps of their propagation",
}
"""Requests to the worker, in this order, each with what stays unknown without it."""

NOT_XLAS = "the sdy stage is a propagation of the StableHLO by shardscope, which may end otherwise than XLA's own: {}"

Dumped = tuple[Path, Path, Path]
"""The HLO behind XLA's propagation, and the module before and after it."""


class Propagated(Record, frozen=True):
    """The text, if there is one, the seconds it took, and what is missing, in words."""

    text: bytes | None = None
    seconds: float | None = None
    problem: str | None = None


def is_explained(capture: Capture) -> bool:
    """Return whether the origins of shardings, on which strategies depend, are final."""
    stablehlo = capture.stage("stablehlo")
    if stablehlo is None or capture.stage("sdy") is not None or not has_mesh(stablehlo.source.data):
        return True
    return any(message.phase == "propagation" for message in capture.messages)


def is_recorded(capture: Capture) -> bool:
    """Return whether propagation was recorded, which takes time: XLA's dump, a stage as well, has no origins."""
    stage = capture.stage("sdy")
    has_failed = any(message.phase == "propagation" for message in capture.messages)
    return has_failed or (stage is not None and stage.seconds is not None)


class Propagation:
    """One run of Shardy: made ready, given a text, and heard of through `deliver`, which another thread calls."""

    def __init__(
        self,
        children: Children,
        python: str,
        environment: Mapping[str, str],
        workspace: Path,
        deliver: Callable[[Propagated], None],
    ) -> None:
        self._children = children
        self._python = python
        self._environment = environment
        self._folder = workspace
        self._deliver = deliver
        self._texts: queue.SimpleQueue[tuple[bytes, Dumped | None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="shardscope-propagation", daemon=True)
        self._thread.start()

    def submit(self, stablehlo: bytes, dumped: Dumped | None) -> None:
        """Give it the text, and XLA's files if it wrote them; `deliver` will be called once."""
        self._texts.put((stablehlo, dumped))

    def stop(self) -> None:
        """End it, whatever it is doing, with the other children, and wait until it is gone."""
        self._children.kill()
        self._texts.put(None)
        self._thread.join(timeout=5)

    def _run(self) -> None:
        child = self._start()
        if (job := self._texts.get()) is None:
            return
        try:
            self._deliver(self._propagate(child, *job))
        except OSError as error:
            self._deliver(Propagated(problem=_missing("", [str(error)])))

    def _propagate(self, child: Child | None, text: bytes, dumped: Dumped | None) -> Propagated:
        source = self._folder / SOURCE
        source.write_bytes(text)
        why_not_xlas = "XLA wrote no dump of it"
        for files in (dumped, None) if dumped else (None,):
            problems: list[str] = []
            for wish, missing in WISHES.items():
                child = child or self._start()
                outcome = self._ask(child, source, self._folder / "propagated.mlir", wish, files or ())
                child = None
                if isinstance(outcome, Propagated):
                    said = [_missing(missing, problems)] if missing else []
                    said += [] if files else [NOT_XLAS.format(why_not_xlas)]
                    return replace(outcome, problem="; ".join(said) or None)
                problems.append(outcome)
            why_not_xlas = problems[-1]
        return Propagated(problem=_missing(WISHES[""], problems))

    def _start(self) -> Child | None:
        command = bootstrap.command(self._python, "provenance")
        # What starts the capture itself says so, too.
        with suppress(OSError, ValueError), open(self._folder / "propagation.log", "wb") as log:
            pipe = subprocess.PIPE
            return self._children.begin(command, self._environment, WARMTH.fork, stdin=pipe, stdout=log, stderr=log)
        return None

    def _ask(
        self, child: Child | None, source: Path, destination: Path, wish: str, files: Sequence[Path]
    ) -> Propagated | str:
        if child is None:
            return "it could not be started"
        started = time.perf_counter()
        job = "\n".join((str(source), str(destination), wish, *map(str, files))).encode()
        try:
            status = child.ended(job, TIMEOUT_S).status
        except subprocess.TimeoutExpired:
            return f"timed out after {TIMEOUT_S:g} s"
        if status == 0 and destination.is_file():
            return Propagated(destination.read_bytes(), round(time.perf_counter() - started, 6))
        if status < 0:
            return signal.Signals(-status).name
        lines = (self._folder / "propagation.log").read_text("utf-8", "replace").strip().splitlines()
        return lines[-1][:500] if lines else f"exit status {status}"


def propagated(
    capture: Capture, stablehlo: bytes, dumped: Dumped | None, python: str, environment: Mapping[str, str]
) -> Capture:
    """The capture with origins, in a process that starts when this is called."""
    arrived: queue.SimpleQueue[Propagated] = queue.SimpleQueue()
    with Scratch() as workspace, Children() as children:
        propagation = Propagation(children, python, environment, workspace, arrived.put)
        try:
            propagation.submit(stablehlo, dumped)
            return with_propagation(capture, arrived.get())
        finally:
            propagation.stop()


def _missing(what: str, problems: Sequence[str]) -> str:
    return f"{what} are not known: Shardy failed to record them ({'; then '.join(problems)})"


def with_propagation(growing: Capture, found: Propagated) -> Capture:
    """The capture with the stage, and with a message where something is missing in it."""
    if found.text is not None:
        growing = fold(growing, Stage("sdy", found.seconds, found.text))
    if found.problem is not None:
        growing = fold(growing, Message("info", found.problem, "propagation"))
    return growing
