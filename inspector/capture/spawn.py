"""Captures a function in a process of its own, and hands out the growing Capture as each thing arrives.

The process in front survives whatever a script or XLA does there, and never imports jax itself.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Protocol

from ...parsers.record import Record
from ..targets.target import Target, TargetError, parse_target
from .attempt import Attempt
from .environment import DEFAULT_DEVICES, NoJaxError, interpreter_with_jax, user_devices
from .model import Capture, Failure
from .one_device import compared, on_one_device
from .protocol.events import Message, Progress
from .protocol.request import Request as Request
from .warm import WARMTH

MAX_ATTEMPTS = 4
"""Maximum number of times that a capture is started, each time with another number of devices."""


class Running(Protocol):
    """A process, or several, that a capture has started."""

    def kill(self) -> None:
        """End it. May be called from any thread."""


class Cancellation:
    """Ends a capture from another thread than the one that iterates over it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempt: Running | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """End it; the iteration stops soon after. What was captured so far stays as it is."""
        with self._lock:
            self.cancelled = True
            if self._attempt is not None:
                self._attempt.kill()

    def attach(self, attempt: Running) -> None:
        """Let this be what is ended; at once, if it is cancelled already."""
        with self._lock:
            self._attempt = attempt
            if self.cancelled:
                attempt.kill()


class CaptureHandle(Record, frozen=True):
    """A capture that has begun: what it gives, as `capture` does, and how to end it."""

    request: Request
    captures: Iterator[Capture]
    cancellation: Cancellation


def begin(request: Request) -> CaptureHandle:
    """Begin a capture; its process is on its way when this returns, whenever somebody looks at what it gives."""
    cancellation = Cancellation()
    captures = capture(request, cancellation)
    return CaptureHandle(request, chain([next(captures)], captures), cancellation)


def capture(request: Request, cancellation: Cancellation | None = None) -> Generator[Capture, None, None]:
    """Capture a function; yields a Capture after every event, each with more in it, the last one complete or failed.

    Whatever goes wrong is the last Capture's `failure`; nothing is raised for it. Closing the iterator, or an exception
    while it waits (Ctrl-C), ends the capturing process and all that it started.

    How many fake devices a script needs is learnt from its error when there are too few or too many, and the capture
    is begun anew: a Capture may then hold less than the one before.
    """
    try:
        target = parse_target(request.target)
    except TargetError as error:
        yield Capture(failure=Failure("usage", str(error), "start", hint="`shardscope targets` lists the targets"))
        return
    if target.devices is not None and request.devices not in (None, target.devices):
        message = f"target {request.target} has {target.devices} devices, but --devices is {request.devices}"
        yield Capture(failure=Failure("usage", message, "start", hint="omit --devices"))
        return
    try:
        found = interpreter_with_jax(request.python)
    except NoJaxError as error:
        yield Capture(failure=Failure("usage", error.message, "start", hint=NoJaxError.HINT))
        return
    reference = request.reference or (request.gradients and request.live)
    request = replace(request, python=None if found == sys.executable else found, reference=reference)
    cancellation = cancellation or Cancellation()
    deadline = None if request.timeout is None else time.monotonic() + request.timeout
    captures = _captures(request, target, deadline, cancellation)
    if not request.reference:
        yield from captures
        return
    for latest in captures:
        if latest.progress is None and latest.complete:
            yield replace(latest, complete=False, progress=Progress("reference", 0.0))
            yield _with_reference(latest, request, target, deadline, cancellation)
        else:
            yield latest


def _with_reference(
    capture: Capture, request: Request, target: Target, deadline: float | None, cancellation: Cancellation
) -> Capture:

    def again(*, nudged: bool) -> Capture:
        wanted = on_one_device(request, capture, nudged=nudged)
        last = deque(_captures(wanted, target, deadline, cancellation), maxlen=1)
        return last.pop() if last else Capture(failure=Failure("died", "cancelled", "start"))

    alone = again(nudged=False)
    found = compared(capture, alone)
    if found.differs:
        found = compared(capture, alone, again(nudged=True))
    return replace(capture, reference=found, summaries=())


def _captures(
    request: Request, target: Target, deadline: float | None, cancellation: Cancellation
) -> Iterator[Capture]:
    """Attempts until one has the devices that the script needs."""
    wanted = target.devices if target.devices is not None else request.devices
    negotiable = target.platform == "cpu" and wanted is None and user_devices(os.environ) is None
    devices = DEFAULT_DEVICES if negotiable else wanted
    failed: dict[int | None, Capture] = {}
    avoided: Capture | None = None
    while True:
        try:
            attempt = Attempt(request, target, devices, negotiable, deadline)
        except (OSError, RuntimeError) as error:  # no folder can be made, or no thread
            yield Capture(failure=Failure("usage", f"cannot start: {error}", "start"))
            return
        cancellation.attach(attempt)
        with closing(attempt.captures()) as captures:
            for latest in captures:
                if cancellation.cancelled:
                    return
                if latest.failure is not None:
                    latest = replace(latest, failure=replace(latest.failure, devices=devices))
                if attempt.wanted is None and not attempt.is_too_late:
                    yield latest if avoided is None else _saying_what_it_avoids(latest, avoided)
        if attempt.is_too_late:
            WARMTH.enabled = False
            continue
        if attempt.wanted is None:
            if avoided is not None and _raises_as(latest, avoided):
                yield avoided
            return
        failed[devices] = latest
        if attempt.wanted in failed or len(failed) == MAX_ATTEMPTS:
            yield failed[DEFAULT_DEVICES]
            return
        avoided = avoided or (latest if attempt.is_tried else None)
        devices = attempt.wanted


def _raises_as(one: Capture, other: Capture) -> bool:
    return one.failure is not None and other.failure is not None and one.failure.type == other.failure.type


def _saying_what_it_avoids(capture: Capture, avoided: Capture) -> Capture:
    failure = avoided.failure
    if failure is None:
        return capture
    number = failure.devices
    text = f"with {number} devices the script raises {failure.type}: this is with fewer, --devices {number} is with all"
    return replace(capture, messages=(Message("warning", text, "start"), *capture.messages))


def last_capture(request: Request) -> Capture:
    """All that a request gives, when it is over."""
    return deque(capture(request), maxlen=1).pop()
