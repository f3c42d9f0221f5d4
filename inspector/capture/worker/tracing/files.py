"""The files of a traced process: events, call counts and captures; each stays readable whatever follows."""

from __future__ import annotations

import mmap
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from ...protocol import wire
from ...protocol.events import Event, Schema, frame_of
from ...protocol.trace import CALLS_FILE, EVENTS_FILE, MAX_PROGRAMS, TraceEvent
from ..cells import names_of_cells, with_names_of_cells

NUMBER_BYTES = 8


class ProcessFiles:
    """The folder of this process in the folder of a trace. `calls` are the numbers of calls, by program.

    They are shared with the file system, so that they are right even after the process was killed. What cannot be
    written is lost, and nothing that the script would notice: a folder that whoever traces has removed stays away.
    """

    def __init__(self, trace: str) -> None:
        self.folder = Path(trace, f"{socket.gethostname()}-{os.getpid()}")
        try:
            self._make()
        except OSError as error:
            if os.path.isdir(trace):
                print(f"shardscope: this process is not recorded: {error}", file=sys.stderr)
            self._events = os.open(os.devnull, os.O_WRONLY)
            self.calls = memoryview(bytearray(MAX_PROGRAMS * NUMBER_BYTES)).cast("Q")

    def _make(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._events = os.open(self.folder / EVENTS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        with open(self.folder / CALLS_FILE, "wb+") as file:
            file.truncate(MAX_PROGRAMS * NUMBER_BYTES)
            self.calls = memoryview(mmap.mmap(file.fileno(), MAX_PROGRAMS * NUMBER_BYTES)).cast("Q")

    def write(self, event: TraceEvent | Event) -> None:
        """Append an event."""
        data = _encoded(event)
        with suppress(OSError):
            while data:
                data = data[os.write(self._events, data) :]


class CaptureFile:
    """A saved capture that grows; all that was written can be read at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        import gzip  # not above: a script may have a module of this name

        self._file = gzip.open(path, "wb", compresslevel=1)  # noqa: SIM115 (open until `close`)
        self.write(Schema(wire.SCHEMA))

    def write(self, event: Event) -> None:
        """Append an event."""
        self._file.write(_encoded(event))
        self._file.flush()

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()


def _encoded(event: TraceEvent | Event) -> bytes:
    return wire.encode(with_names_of_cells(frame_of(event), names_of_cells()))
