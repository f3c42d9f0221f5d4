"""The programs of a trace at the bottom of the terminal, while the command prints above them.

The command writes to the same terminal. Its lines scroll in the region above (DECSTBM, as in `apt`), and each change of
the list is one write, which leaves the cursor where it was. Nothing is written without a terminal.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path

from shardscope.inspector.report.traces import Trace

from ..inspector.traces.read import Session

MAX_ROWS = 10
MIN_ROWS_ABOVE = 8
"""Minimum number of terminal rows left to the command."""

PERIOD_S = 0.5

SAVE, RESTORE = "\x1b7", "\x1b8"
"""The place of the cursor, which the setting of a region changes."""

WHOLE = "\x1b[r"
"""All lines scroll."""

INDEX = "\x1bD"
"""One line down, in the same column; at the last line all scroll."""


@contextmanager
def live_list(folder: Path, command: Sequence[str], *, quiet: bool = False) -> Iterator[None]:
    """Show the programs that are recorded into a folder, until the block ends."""
    descriptor = _terminal()
    if quiet or descriptor is None:
        yield
        return
    panel = Panel(descriptor)
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(folder, command, panel, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        panel.close()


class Panel:
    """The last lines of a terminal, taken when there is something to show."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = (0, 0)
        self._height = 0
        self._shown: list[str] = []

    @property
    def room(self) -> tuple[int, int]:
        """The columns of the terminal, and the lines that a list may take."""
        size = os.get_terminal_size(self._descriptor)
        return size.columns, min(MAX_ROWS, size.lines - MIN_ROWS_ABOVE)

    def show(self, lines: list[str]) -> None:
        """Show other lines."""
        size = os.get_terminal_size(self._descriptor)
        place = (size.columns, size.lines)
        if not lines or (lines == self._shown and place == self._size):
            return
        taken = ""
        if place != self._size:
            taken, self._height = f"{SAVE}{WHOLE}{RESTORE}", 0
        if len(lines) > self._height:
            more = len(lines) - self._height
            taken += f"{INDEX * more}\x1b[{more}A{SAVE}\x1b[1;{size.lines - len(lines)}r{RESTORE}"
            self._height = len(lines)
        self._size = place
        shown = [*lines, *[""] * (self._height - len(lines))]
        first = size.lines - self._height + 1
        painted = "".join(f"\x1b[{first + number};1H\x1b[2K{line}" for number, line in enumerate(shown))
        self._write(f"{taken}{SAVE}{painted}\x1b[0m{RESTORE}")
        self._shown = lines

    def close(self) -> None:
        """Give the lines back."""
        if self._height:
            lines = self._size[1]
            erased = "".join(f"\x1b[{lines - number};1H\x1b[2K" for number in range(self._height))
            self._write(f"{SAVE}{erased}{WHOLE}{RESTORE}")
            self._height = 0

    def _write(self, text: str) -> None:
        with suppress(OSError):
            os.write(self._descriptor, text.encode())


def _follow(folder: Path, command: Sequence[str], panel: Panel, ended: threading.Event) -> None:
    session = Session(folder)
    while not ended.wait(PERIOD_S):
        with suppress(OSError):
            columns, rows = panel.room
            session.update()
            trace = session.trace(command)
            if rows > 2 and trace.programs:
                panel.show(painted(trace, columns)[:rows])


def painted(trace: Trace, columns: int) -> list[str]:
    """The lines of the list, as they are for a terminal."""
    from shardscope.inspector.render.safe_console import SafeConsole
    from shardscope.inspector.render.tables.traces import programs
    from shardscope.inspector.render.text.tables import table_section

    shown = table_section(programs(trace))
    if shown is None:
        return []
    out = StringIO()
    SafeConsole(file=out, force_terminal=True, width=columns, highlight=False).print(shown)
    return out.getvalue().rstrip("\n").split("\n")


def _terminal() -> int | None:
    try:
        descriptor = sys.stderr.fileno()
        return descriptor if os.isatty(descriptor) else None
    except (AttributeError, OSError, ValueError):
        return None
