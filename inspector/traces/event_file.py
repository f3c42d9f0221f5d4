"""The events of a process, as far as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..capture.events import decode
from ..capture.model import CaptureError
from ..capture.protocol import wire
from ..capture.protocol.events import Event
from ..capture.protocol.trace import EVENTS_FILE


@dataclass
class EventFile:
    """A file of events that may still grow; `offset` is the end of the last event that was read."""

    path: Path
    offset: int = 0

    def read(self) -> Iterator[Event | None]:
        """The events since the last call; what is cut off, or no event, ends them."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            try:
                for frame in wire.read(stream):
                    self.offset = stream.tell()
                    yield decode(frame)
            except (wire.FrameError, CaptureError):
                return


class EventFiles:
    """Event files of all processes of a trace, by folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, EventFile] = {}

    def read(self) -> Iterator[tuple[Path, Event | None]]:
        """The events since the last call, each with the folder of its process."""
        for path in sorted(self._folder.glob(f"*/{EVENTS_FILE}")):
            file = self._files.setdefault(path.parent, EventFile(path))
            for event in file.read():
                yield path.parent, event
