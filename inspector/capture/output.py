"""What the capturing process prints, as it prints it: both ends of it are kept, however much there is."""

from __future__ import annotations

import os
import selectors
import threading
from typing import IO

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
        self._thread.join(2)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
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
