"""Devices that wait for each other forever: noticed after seconds, where XLA ends the process after a minute."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from ..protocol.events import WAITS, Failure, Imported, Phase
from . import failures
from .channel import Channel, leave

LOOK_S = 0.25
"""Seconds between two looks at the process."""

IDLE_S = 3.0
"""Seconds in which nothing was computed, after which devices wait forever."""

MAX_BUSY_S = 0.01
"""Seconds of the processor between two looks that are none: of threads that wake up to look at something."""

MESSAGE = "devices wait for each other forever"

_CALLBACKS = ("jax/_src/callback.py", "jax/_src/debugging.py")
_WAITING = ("jax/_src/array.py", "jax/_src/api.py", "jax/_src/interpreters/pxla.py")


@contextmanager
def watched(waits: Callable[[int], object]) -> Iterator[None]:
    """Call `waits` with this thread, in another one, once a program that it runs on CPUs only waits."""
    ended = threading.Event()
    runner = threading.get_ident()
    threading.Thread(target=_watch, args=(runner, ended, waits), name="shardscope-waiting", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def tell(channel: Channel, runner: int, phase: Phase) -> NoReturn:
    """Say that devices wait for each other in what a thread runs, and end the process."""
    stack = tuple(failures.users_of(traceback.extract_stack(sys._current_frames().get(runner))))
    channel.send(Imported(failures.files_of_user()))
    channel.send(Failure("function", MESSAGE, phase, said=MESSAGE, stack=stack, since=channel.now(), type=WAITS))
    leave()


def _watch(runner: int, ended: threading.Event, waits: Callable[[int], object]) -> None:
    idle, before = 0, time.process_time()
    while not ended.wait(LOOK_S):
        now = time.process_time()
        is_idle = now - before < MAX_BUSY_S and not _is_any_running() and _is_in_program(runner)
        idle, before = idle + 1 if is_idle else 0, now
        if idle * LOOK_S >= IDLE_S:
            waits(runner)
            return


def _is_any_running() -> bool:
    """Return whether another thread runs or wants to, as Linux has it: on a busy machine that takes no time."""
    own = threading.get_native_id()
    try:
        threads = [each for each in os.listdir("/proc/self/task") if int(each) != own]
    except OSError:  # another system
        return False
    return any(map(_wants_to_run, threads))


def _wants_to_run(thread: str) -> bool:
    try:
        with open(f"/proc/self/task/{thread}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"R", b"D")
    except OSError:  # it has ended
        return False


def _is_in_program(runner: int) -> bool:
    """Return whether a thread is in a program, or waits for its results, and no callback of the program is running."""
    frames = sys._current_frames()
    if any(_files(frame, _CALLBACKS) for thread, frame in frames.items() if thread != threading.get_ident()):
        return False
    for file in (inside.f_code.co_filename for inside in failures.outwards(frames.get(runner))):
        if not failures.is_internal(file):
            return False
        if file.startswith(failures.HERE) or file.endswith(_WAITING):
            return _is_alone_on_cpus()
    return False


def _is_alone_on_cpus() -> bool:
    """Return whether JAX runs programs on CPUs, in this process alone."""
    jax, bridge = sys.modules.get("jax"), sys.modules.get("jax._src.xla_bridge")
    if jax is None or bridge is None or not bridge._backends:  # to ask for one would start them
        return False
    return bool(jax.default_backend() == "cpu" and jax.process_count() == 1)


def _files(frame: FrameType | None, wanted: tuple[str, ...]) -> bool:
    return any(each.f_code.co_filename.endswith(wanted) for each in failures.outwards(frame))
