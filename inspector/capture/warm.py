"""Capturing processes forked from one that has imported JAX, instead of started from nothing.

The first captures with an interpreter and an environment start processes as usual. From then on a server, which has
imported JAX and the worker but has no backend, forks for each of them; `worker/warm_server.py` says what a fork hides.
A forked process is a child of this one as any other, in its own session, with its environment, folder and file
descriptors. A server ends with this process, or after some minutes without a request; without one, or on other systems
than Linux, processes start as usual.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from .children import Children
from .guarding import MARK
from .protocol.bootstrap import LOAD
from .scratch import Scratch

PROGRAM = Path(__file__).parent / "worker" / "warm_server.py"

TOO_LATE = 97
"""Exit status of a fork whose script changes the environment before it imports JAX, which has read it already."""

LATE = ("XLA_FLAGS", "PYTEST_CURRENT_TEST", MARK)
"""Variables that importing JAX does not read: all others are those that a server was started with."""

MAX_SERVERS = 3
"""So many environments have one, those used last."""

MAX_BYTES = 1 << 30
"""Memory of a server: five times what importing JAX 0.12 takes (190 MiB). One that has grown beyond it is replaced."""

COLD_STARTS = 1
"""Captures whose processes start as usual in an environment."""

ANSWER_S = 60.0
"""Seconds in which a server must answer."""

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

IS_POSSIBLE = sys.platform == "linux" and sys.version_info < (3, 15)
"""True where processes can be adopted, and `subprocess.Popen` has the one private method that `Child` replaces."""


class _Server:
    """One warm process. A thread at a time may ask it to fork."""

    def __init__(self, python: str, folder: str, environment: Mapping[str, str]) -> None:
        ours, its = socket.socketpair()
        self._children = Children()
        with its:
            self._process = self._children.begin(
                [python, "-c", PROGRAM.read_text(), str(its.fileno()), LOAD, folder],
                # No mark of a capture's: it outlives the one that it is started for.
                {name: value for name, value in environment.items() if name not in LATE},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(its.fileno(),),
                cwd="/",
            )
        ours.settimeout(ANSWER_S)
        self._connection = ours
        self._is_ready = False

    def fork(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Return the id of a new child of this process.

        Raises:
            OSError: the server is gone, or does not answer.
        """
        data = json.dumps(request).encode()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        with _adopting():
            if not self._is_ready:
                self._receive(len(b"ready"))
                self._is_ready = True
            self._connection.sendmsg([len(data).to_bytes(8, "big")], ancillary)
            self._connection.sendall(data)
            return int.from_bytes(self._receive(8), "big")

    @property
    def memory(self) -> int:
        """Resident bytes; 0 once it has ended."""
        try:
            resident = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]  # proc(5), in pages
        except (OSError, IndexError):
            return 0
        return int(resident) * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> None:
        """End it; what it started goes on."""
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._children.dismiss()

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._connection.recv(size - len(data))
            if not piece:
                raise ConnectionError("the warm server has ended")
            data += piece
        return data


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Let orphans among the descendants of this process become its children meanwhile."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


class Warmth:
    """The servers of this process, one for each interpreter and environment; without `enabled` none is used."""

    def __init__(self) -> None:
        self.enabled = IS_POSSIBLE
        self.forked = 0
        self._servers: dict[tuple[Any, ...], _Server] = {}
        self._requests: Counter[tuple[Any, ...]] = Counter()
        self._latest: tuple[tuple[Any, ...], str, str, Mapping[str, str]] | None = None
        self._lock = threading.Lock()

    def fork(self, args: Any, cwd: str | None, env: Mapping[str, str] | None, request: Any, ends: Any) -> int | None:
        """Return the id of a process that is forked for a command; None where it is to be started as usual."""
        if not self.enabled or env is None or isinstance(args, str) or list(args[1:3]) != ["-c", LOAD]:
            return None
        if cwd is not None and not os.path.isdir(cwd):
            return None
        key = (args[0], args[3], frozenset((name, value) for name, value in env.items() if name not in LATE))
        with self._lock:
            self._requests[key] += args[4] == "main"
            self._latest = (key, args[0], args[3], dict(env))
            if self._requests[key] <= COLD_STARTS:
                return None
            try:
                pid = self._server(*self._latest).fork(request, ends)
            except (OSError, ValueError):
                if key in self._servers:
                    self._servers.pop(key).close()
                self._requests[key] = 0  # another one is tried only later
                return None
            self.forked += 1
            return pid

    @cached_property
    def compiled(self) -> Scratch:
        """The folder of what scripts compiled: it goes with this process."""
        return Scratch()

    def prepare(self) -> None:
        """Start a server for what was started last: somebody is going to capture again."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self.enabled and self._latest is not None:
                self._server(*self._latest)

    def _server(self, key: tuple[Any, ...], python: str, folder: str, environment: Mapping[str, str]) -> _Server:
        """The server for a key, which becomes the one that was used last."""
        known = self._servers.pop(key) if key in self._servers else None
        if known is not None and known.memory > MAX_BYTES:
            known.close()
            known = None
        server = self._servers[key] = known or _Server(python, folder, environment)
        self._requests[key] = max(self._requests[key], COLD_STARTS)
        if len(self._servers) > MAX_SERVERS:
            self._servers.pop(next(iter(self._servers))).close()
        return server

    def close(self) -> None:
        """End all servers."""
        with self._lock:
            for server in self._servers.values():
                server.close()
            self._servers.clear()


WARMTH = Warmth()
"""The servers of this process."""
