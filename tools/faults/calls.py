"""Calls of the system that fail by number."""

from __future__ import annotations

import builtins
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any

AUDITED = {
    "open": (errno.EMFILE, errno.EIO),
    "subprocess.Popen": (errno.EAGAIN,),
    "os.mkdir": (errno.ENOSPC,),
    "os.rename": (errno.ENOSPC,),
    "os.scandir": (errno.EIO,),
    "os.listdir": (errno.EIO,),
    "os.remove": (errno.EIO,),
}
WRAPPED = {
    "write": (errno.ENOSPC, errno.EPIPE),
    "read": (errno.EIO,),
    "pipe": (errno.EMFILE,),
    "fsync": (errno.ENOSPC,),
    "stat": (errno.EIO,),
}


class Counted(io.FileIO):
    """A file whose writes and reads are counted."""

    count: Callable[[str], None]

    def write(self, data: Any) -> int:
        """Write, or fail."""
        self.count("write")
        return super().write(data)

    def readinto(self, buffer: Any) -> int:
        """Read, or fail."""
        self.count("read")
        return super().readinto(buffer)

    def readall(self) -> bytes:
        """Read all, or fail."""
        self.count("read")
        return super().readall()


def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, closefd: bool = True, **options: Any) -> Any:
    """As `open`."""
    raw = Counted(file, mode.replace("b", "").replace("t", ""), closefd)
    buffered = io.BufferedReader(raw) if mode.startswith("r") and "+" not in mode else io.BufferedWriter(raw)
    return buffered if "b" in mode else io.TextIOWrapper(buffered, *rest, **options)


class Faults:
    """Fails the n-th of the calls of one kind that are made from now on; `hit` tells whether there were so many."""

    def __init__(self) -> None:
        self.kind, self.number, self.code, self.left = "", 0, 0, -1
        sys.addaudithook(self._audit)
        for name in WRAPPED:
            self._wrap(name)
        Counted.count = staticmethod(self._count)
        builtins.open = io.open = opened  # type: ignore[assignment]

    def arm(self, kind: str, number: int, code: int) -> None:
        """Let that call fail."""
        self.kind, self.code, self.left = kind, code, number

    @property
    def hit(self) -> bool:
        """Whether it has failed."""
        return self.left == 0

    def _count(self, kind: str) -> None:
        if kind == self.kind and self.left > 0:
            self.left -= 1
            if self.left == 0:
                raise OSError(self.code, os.strerror(self.code))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in AUDITED and self.left > 0:
            self._count(event)

    def _wrap(self, name: str) -> None:
        function: Callable[..., Any] = getattr(os, name)

        def wrapped(*arguments: Any, **options: Any) -> Any:
            self._count(name)
            return function(*arguments, **options)

        setattr(os, name, wrapped)
