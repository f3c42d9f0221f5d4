"""The process of a capture: its frames, what it prints, and its end. And the one that evaluates its case."""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from resource import struct_rusage
from typing import IO

from .child import Child
from .children import Children, run
from .endings import Ending
from .events import decode
from .model import CaptureError
from .protocol import wire
from .protocol.values import Probe, Validation
from .protocol.wire import Frame, FrameError, read
from .warm import WARMTH

MAX_BYTES = 1 << 32
"""Bytes of texts that one capture may send; a process that sends more is ended."""

GRACE = 2.0
"""Seconds for Python to write down where it was, before the process is killed."""


class Process:
    """Runs a command, made of a file descriptor, and reads its frames from that in a thread, which `deliver`s them.

    The last thing delivered is the process's ending, or the error that kept it from starting. The thread lives as long
    as the process, as `Child` wants.
    """

    is_warm = False

    def __init__(
        self,
        children: Children,
        command: Callable[[int], list[str]],
        environment: Mapping[str, str],
        directory: str | None,
        deliver: Callable[[Frame | Ending | OSError | ValueError | RuntimeError], None],
        stdin: str | None = None,
    ) -> None:
        self._children = children
        self._command = command
        self._environment = environment
        self._directory = directory
        self._deliver = deliver
        self._stdin = stdin
        self._child: Child | None = None
        self._has_begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shardscope-capture", daemon=True)
        self._thread.start()
        self._has_begun.wait()  # what this thread does meanwhile would delay it, by Python's lock, many times over

    def interrupt(self) -> None:
        """Have Python write its stack to the fault log and end; whatever is not gone soon after is killed."""
        if self._child is not None:
            self._child.terminate(signal.SIGABRT, GRACE)

    def join(self) -> None:
        """Wait until it is gone."""
        self._thread.join(timeout=10)

    def _run(self) -> None:
        try:
            ending: Ending | OSError | ValueError | RuntimeError = self._followed()
        except (OSError, ValueError, RuntimeError) as error:  # there is no such program, file descriptor, or thread
            ending = error
        finally:
            self._has_begun.set()
        self._deliver(ending)

    def _followed(self) -> Ending:
        """Start the process and pass on its frames until it has ended; how it did."""
        # Without waiting: the writer of a pipe may have ended, and what it wrote is there.
        path = self._stdin or os.devnull
        with open(path, "rb", 0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stdin:
            os.set_blocking(stdin.fileno(), True)
            reading, writing = os.pipe()
            try:
                self._child = child = self._children.begin(
                    self._command(writing),
                    self._environment,
                    WARMTH.fork,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(writing,),
                    cwd=self._directory,
                )
            except (OSError, ValueError):
                os.close(reading)
                raise
            finally:
                os.close(writing)
        self.is_warm = child.is_warm
        self._has_begun.set()
        assert child.stdout is not None
        assert child.stderr is not None
        drain = Drain(child.stdout, child.stderr)
        damage = self._read_frames(reading, child)
        ended = _ended(child.pid) if damage is not None else None
        if ended is not None:
            damage = None  # Its last frame was cut off because it died, and not the other way.
        else:
            if damage is not None:
                child.kill()
            ended = os.wait4(child.pid, 0)
        _, status, usage = ended
        child.returncode = os.waitstatus_to_exitcode(status)
        child.end_group()
        drain.finish()
        return Ending(child.returncode, _peak(usage), drain.stdout.data, stderr=drain.stderr.data, damage=damage)

    def _read_frames(self, descriptor: int, child: Child) -> str | None:
        size = 0
        with open(descriptor, "rb") as stream:
            try:
                for frame in wire.read(stream):
                    size += len(frame.text)
                    if size > MAX_BYTES:
                        return f"more than {MAX_BYTES} bytes"
                    self._deliver(frame)
            except FrameError as error:
                return None if child.is_killed else str(error)
        return None


def _peak(usage: resource.struct_rusage) -> int | None:
    """Bytes. Linux starts to count with what this process held when it started the other: less is not known."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) if usage.ru_maxrss > own else None


def _ended(pid: int) -> tuple[int, int, struct_rusage] | None:
    """Return the result of `os.wait4` for a process that ends within a moment, None for one that goes on."""
    for _ in range(20):
        ended = os.wait4(pid, os.WNOHANG)
        if ended[0]:
            return ended
        time.sleep(0.05)
    return None


KEPT = 64 * 1024
"""Bytes kept of the beginning, and as many of the end."""


class Output:
    """The first and the last bytes of a stream."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._length = 0

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self._length += len(data)
        room = KEPT - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-KEPT:] if room < len(data) else self._tail

    @property
    def data(self) -> bytes:
        """Head and tail, with a line in between that says how much is missing."""
        missing = self._length - len(self._head) - len(self._tail)
        gap = b"\n... %d bytes are left out here ...\n" % missing if missing else b""
        return self._head + gap + self._tail


class Drain:
    """Reads two pipes in a thread of its own, so that whoever writes to them never waits."""

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.stdout = Output()
        self.stderr = Output()
        self._pipes = {stdout: self.stdout, stderr: self.stderr}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shardscope-output", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Read what is still there. A process that left the group may hold the pipes open: it is not waited for."""
        self._over.set()
        self._thread.join(timeout=2)

    def _run(self) -> None:
        with suppress(OSError), selectors.DefaultSelector() as selector:
            for pipe, output in self._pipes.items():
                selector.register(pipe, selectors.EVENT_READ, output)
            while selector.get_map():
                ready = selector.select(timeout=0.1)
                if not ready and self._over.is_set():
                    break
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    key.data.add(data)
                    if not data:
                        selector.unregister(key.fileobj)
        for pipe in self._pipes:
            pipe.close()


START_S = 30.0
"""Further seconds for the process to start and to end."""

EVALUATOR = (sys.executable, "-m", __name__.replace("capture.process", "evaluate"))
"""The command that evaluates; it needs numpy, which this process does not."""


def evaluated(
    folder: Path, seconds: float, children: Children | None = None, *, values: bool = True
) -> tuple[Validation, tuple[Probe, ...]]:
    """The validation of the case in a folder, and `values` of the compiled program on its partitions.

    The process is one of the `children`. Where it dies or is killed, the validation says why there is none.
    """
    command = [*EVALUATOR, str(folder), str(seconds), *(("values",) if values else ())]
    try:
        done = run(command, timeout=seconds + START_S, children=children)
    except subprocess.TimeoutExpired:
        return Validation("not evaluated", reason=f"not evaluated in {seconds:.0f} s"), ()
    except OSError as error:
        return Validation("not evaluated", reason=f"there is no evaluating process: {error}"), ()
    if done.status == 0:
        with suppress(FrameError, CaptureError):
            *probes, validation = map(decode, read(BytesIO(done.stdout)))
            if isinstance(validation, Validation):
                return validation, tuple(probe for probe in probes if isinstance(probe, Probe))
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    said = lines[-1] if lines else f"exit status {done.status}"
    return Validation("not evaluated", reason=f"the evaluating process ended: {said}"), ()
