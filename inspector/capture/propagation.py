"""The `sdy` stage: what XLA's own propagation gives, with origins, in a process beside the capturing one.

`worker/provenance.py` says why. The process is started at once, so that it is ready when XLA has propagated; where it
dies, it is started again and asked for less. Without XLA's dump it propagates the StableHLO, and the capture says so.
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
from .events import fold
from .guardian import Guardian
from .model import Capture
from .protocol import bootstrap
from .protocol.events import Message, Stage
from .scratch import Scratch
from .warm import Popen

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


def has_mesh(stablehlo: bytes) -> bool:
    """Return whether there is anything to propagate: a program without a mesh has no shardings."""
    return b"sdy.mesh" in stablehlo


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
        guardian: Guardian,
        python: str,
        environment: Mapping[str, str],
        workspace: Path,
        deliver: Callable[[Propagated], None],
    ) -> None:
        self._guardian = guardian
        self._python = python
        self._environment = environment
        self._folder = workspace
        self._deliver = deliver
        self._texts: queue.SimpleQueue[tuple[bytes, Dumped | None] | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="shardscope-propagation", daemon=True)
        self._thread.start()

    def submit(self, stablehlo: bytes, dumped: Dumped | None) -> None:
        """Give it the text, and XLA's files if it wrote them; `deliver` will be called once."""
        self._texts.put((stablehlo, dumped))

    def stop(self) -> None:
        """End it, whatever it is doing, and wait until it is gone."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
        self._texts.put(None)
        self._thread.join(timeout=5)

    def _run(self) -> None:
        process = self._start()
        job = self._texts.get()
        if job is None:
            _reap(process)
            return
        try:
            self._deliver(self._propagate(process, *job))
        except OSError as error:
            self._deliver(Propagated(problem=_missing("", [str(error)])))

    def _propagate(self, process: subprocess.Popen[bytes] | None, text: bytes, dumped: Dumped | None) -> Propagated:
        source = self._folder / "propagation.mlir"
        source.write_bytes(text)
        why_not_xlas = "XLA wrote no dump of it"
        for files in (dumped, None) if dumped else (None,):
            problems: list[str] = []
            for wish, missing in WISHES.items():
                process = process or self._start()
                outcome = self._ask(process, source, self._folder / "propagated.mlir", wish, files or ())
                process = None
                if isinstance(outcome, Propagated):
                    said = [_missing(missing, problems)] if missing else []
                    said += [] if files else [NOT_XLAS.format(why_not_xlas)]
                    return replace(outcome, problem="; ".join(said) or None)
                problems.append(outcome)
            why_not_xlas = problems[-1]
        return Propagated(problem=_missing(WISHES[""], problems))

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock, suppress(OSError, ValueError):  # what starts the capture itself says so, too
            if not self._stopped:
                with open(self._folder / "propagation.log", "wb") as log:
                    self._process = self._guardian.start(
                        bootstrap.command(self._python, "provenance"),
                        self._environment,
                        Popen,
                        stdin=subprocess.PIPE,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                return self._process
        return None

    def _ask(
        self,
        process: subprocess.Popen[bytes] | None,
        source: Path,
        destination: Path,
        wish: str,
        files: Sequence[Path],
    ) -> Propagated | str:
        if process is None:
            return "it could not be started"
        started = time.perf_counter()
        job = "\n".join((str(source), str(destination), wish, *map(str, files))).encode()
        try:
            process.communicate(job, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _reap(process)
            return f"timed out after {TIMEOUT_S:g} s"
        if process.returncode == 0 and destination.is_file():
            return Propagated(destination.read_bytes(), round(time.perf_counter() - started, 6))
        if process.returncode < 0:
            return signal.Signals(-process.returncode).name
        lines = (self._folder / "propagation.log").read_text("utf-8", "replace").strip().splitlines()
        return lines[-1][:500] if lines else f"exit status {process.returncode}"


def propagated(
    capture: Capture, stablehlo: bytes, dumped: Dumped | None, python: str, environment: Mapping[str, str]
) -> Capture:
    """The capture with origins, in a process that starts when this is called."""
    arrived: queue.SimpleQueue[Propagated] = queue.SimpleQueue()
    with Scratch() as workspace, Guardian() as guardian:
        propagation = Propagation(guardian, python, environment, workspace, arrived.put)
        try:
            propagation.submit(stablehlo, dumped)
            return with_propagation(capture, arrived.get())
        finally:
            propagation.stop()


def _reap(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        process.kill()
        process.communicate()


def _missing(what: str, problems: Sequence[str]) -> str:
    return f"{what} are not known: Shardy failed to record them ({'; then '.join(problems)})"


def with_propagation(growing: Capture, found: Propagated) -> Capture:
    """The capture with the stage, and with a message where something is missing in it."""
    if found.text is not None:
        growing = fold(growing, Stage("sdy", found.seconds, found.text))
    if found.problem is not None:
        growing = fold(growing, Message("info", found.problem, "propagation"))
    return growing
