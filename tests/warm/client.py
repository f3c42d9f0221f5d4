"""Starts capturing processes from a warm server instead of from nothing: they need not import JAX again.

It takes the place of one step of `subprocess.Popen`: what it gives is a child of this process as any other, in its own
session, with the environment, the folder and the file descriptors that were asked for; see `server.py`. What a command
line starts otherwise, what runs in another interpreter, and tests marked `cold` are not concerned.
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
from pathlib import Path
from typing import Any

from shardscope.inspector.capture.guarding import MARK

SERVER = Path(__file__).with_name("server.py").read_text()

LATE = ("XLA_FLAGS", "PYTEST_CURRENT_TEST", MARK)
"""Variables that importing JAX does not read: all others are those that a server was started with."""

SERVERS = 3
"""So many environments have one, those used last; started at the second capture, each of which is two processes."""

IDLE_WAIT_S = 60.0
"""Seconds in which a server must answer."""

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

_one_at_a_time = threading.Lock()


class Server:
    """One warm process. A thread at a time may ask it to fork."""

    def __init__(self, load: str, folder: str, environment: Mapping[str, str]) -> None:
        ours, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVER, str(its.fileno()), load, folder],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(its.fileno(),),
                start_new_session=True,
                # It serves others, too, when the guardian of the capture that it is started for ends what has its mark.
                env={name: value for name, value in environment.items() if name != "SHARDSCOPE_GUARDED"},
                cwd="/",
            )
        ours.settimeout(IDLE_WAIT_S)
        self._connection = ours
        self._ready = False

    def fork(self, request: dict[str, Any], descriptors: Sequence[int]) -> int:
        """The id of a new child of this process.

        Raises:
            OSError: the server is gone, or does not answer.
        """
        data = json.dumps(request).encode()
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        try:
            with _one_at_a_time, _adopting():
                if not self._ready:
                    self._receive(len(b"ready"))
                    self._ready = True
                self._connection.sendmsg([len(data).to_bytes(8, "big")], ancillary)
                self._connection.sendall(data)
                return int.from_bytes(self._receive(8), "big")
        except OSError as error:
            self._process.kill()
            _, stderr = self._process.communicate()
            raise OSError(f"the warm server is of no use: {error}\n{stderr.decode()[-4000:]}") from error

    def close(self) -> None:
        """End it; what it started goes on."""
        self._connection.close()
        self._process.kill()
        self._process.communicate()

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._connection.recv(size - len(data))
            if not piece:
                raise ConnectionError("it has ended")
            data += piece
        return data


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Meanwhile orphans among the descendants of this process become its children."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


class Warmth:
    """The servers of a test session, one for each environment, and whether they are in use.

    `load` is the program of a capturing process, as in `python -c LOAD FOLDER …`.
    """

    def __init__(self, load: str) -> None:
        self.enabled = True
        self.forked = 0
        self._load = load
        self._servers: dict[tuple[Any, ...], Server] = {}
        self._requests: Counter[tuple[Any, ...]] = Counter()
        self._lock = threading.Lock()
        self._execute = subprocess.Popen._execute_child  # type: ignore[attr-defined]

    def install(self) -> None:
        """From now on, start what can be started so from a server."""
        warmth = self

        def execute_child(
            popen: Any, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any,
            startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int,
            errread: int, errwrite: int, *rest: Any,
        ) -> None:  # fmt: skip
            """As `subprocess.Popen._execute_child` of Python 3.11 to 3.14."""
            ends = (p2cread, c2pwrite, errwrite)
            server = warmth._server(args, cwd, env) if -1 not in ends else None
            if server is None:
                own = (popen, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags)
                warmth._execute(*own, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *rest)
                return
            request = {
                "args": list(args),
                "env": dict(env),
                "cwd": os.path.abspath(cwd or "."),
                "pass_fds": list(pass_fds),
                "new_session": bool(rest[-2]),
            }
            popen.pid = server.fork(request, [*ends, *pass_fds])
            popen._child_created = True
            warmth.forked += 1
            popen._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

        subprocess.Popen._execute_child = execute_child  # type: ignore[attr-defined]

    def close(self) -> None:
        """End all servers."""
        subprocess.Popen._execute_child = self._execute  # type: ignore[attr-defined]
        for server in self._servers.values():
            server.close()

    def _server(self, args: Any, cwd: str | None, env: Mapping[str, str] | None) -> Server | None:
        if (
            not self.enabled
            or env is None
            or isinstance(args, str)
            or list(args[:3]) != [sys.executable, "-c", self._load]
        ):
            return None
        if cwd is not None and not os.path.isdir(cwd):
            return None
        key = (args[3], frozenset((name, value) for name, value in env.items() if name not in LATE))
        with self._lock:
            self._requests[key] += 1
            if key not in self._servers and self._requests[key] > 2:
                own = {name: value for name, value in env.items() if name != MARK}  # no capture's end is the server's
                self._servers[key] = Server(self._load, args[3], own)
                if len(self._servers) > SERVERS:
                    unused = next(iter(self._servers))
                    self._servers.pop(unused).close()
                    del self._requests[unused]
            if key in self._servers:
                self._servers[key] = self._servers.pop(key)  # to the end: used last
            return self._servers.get(key)
