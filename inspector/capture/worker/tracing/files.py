"""The files of a traced process: events, call counts and captures; each stays readable whatever follows.

Cells of notebooks have the names in them that IPython shows: `In[3]` for a file like `/tmp/ipykernel_17/4031.py`.
"""

from __future__ import annotations

import json
import linecache
import mmap
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...protocol import wire
from ...protocol.events import Event, Schema, frame_of
from ...protocol.trace import CALLS_FILE, EVENTS_FILE, MAX_PROGRAMS, TraceEvent
from ...protocol.wire import Frame

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


def names_of_cells() -> Mapping[str, str]:
    """The names of the cells that were executed in this process, by what Python takes for their files."""
    loaded = sys.modules.get("IPython")
    shell = None if loaded is None else loaded.get_ipython()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    if name_of is None:
        return {}
    named = ((file, name_of(file)) for file in tuple(linecache.cache) if isinstance(file, str))
    return {file: name[1] for file, name in named if name is not None}


def with_names_of_cells(frame: Frame, cells: Mapping[str, str]) -> Frame:
    """The frame of an event with the names of cells in the places of files, which stand for nothing else."""
    event, text = frame
    for file, name in cells.items():
        text = text.replace(file.encode(), name.encode())
        written = json.dumps(event)
        inside, instead = json.dumps(file)[1:-1], json.dumps(name)[1:-1]
        event = json.loads(written.replace(inside, instead)) if inside in written else event
    return Frame(event, text)
