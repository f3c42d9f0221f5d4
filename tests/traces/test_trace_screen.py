"""The list of a trace on the screen, and at the bottom of a terminal while the command runs."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress

import pytest
from shardscope.inspector.capture import file
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.on_screen import analyses
from shardscope.inspector.report.traces import Program
from shardscope.inspector.traces.read import Session
from shardscope.tui.app import ScreenApp
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.row_table import RowTable
from shardscope.tui.trace_screen import TraceScreen

from shardscope.commands.live_list import Panel, live_list, painted
from tests.tui.conftest import Driver

from .conftest import Recorded


class Recording:
    """The capture of a program; counts how often it was asked for."""

    asked = 0

    def __init__(self, program: Program) -> None:
        self._program = program

    def __iter__(self) -> Iterator[Capture]:
        Recording.asked += 1
        yield file.load(self._program.path or "")

    def cancel(self) -> None:
        pass


@pytest.mark.once
async def test_reports_are_opened_from_the_list(training: Recorded) -> None:
    app = ScreenApp(TraceScreen, training.trace, Recording, analyses())
    async with app.run_test(size=(150, 45)) as pilot:
        driver = Driver(app, pilot)  # type: ignore[arg-type]
        await driver.until(lambda: "train_step" in driver.text)
        assert Recording.asked == 0
        table = app.screen.query_one(RowTable)
        assert "train_step" in table.rows[0].cells[3].plain
        await driver.press("down", "down")
        place = table.cursor
        name = table.rows[place].cells[3].plain
        await driver.press("enter")
        await driver.until(lambda: isinstance(app.screen, MainScreen) and app.screen.report is not None)
        assert name.partition(".")[0] in driver.text
        await driver.press("escape")
        await driver.until(lambda: app.screen.query(RowTable) and not isinstance(app.screen, MainScreen))
        assert table.cursor == place
        await driver.press("enter", "escape", "question_mark")
        await driver.until(lambda: "ranked by bytes" in driver.text)
        assert Recording.asked == 1


def test_what_is_shown_while_it_runs_is_what_is_shown_then(training: Recorded) -> None:
    session = Session(training.folder)
    assert session.update()
    first = session.trace(training.trace.command)
    assert not session.update()
    again = session.trace(training.trace.command)
    assert first.programs == again.programs == training.trace.programs
    assert painted(first, 120) == painted(training.trace, 120)


def test_the_list_leaves_the_lines_of_the_command_alone() -> None:
    """What is written restores the cursor, and in the end all lines scroll again."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    panel = Panel(writer)
    assert panel.room == (80, 10)
    panel.show(["first", "second"])
    panel.show(["first", "second"])
    panel.show(["first", "second", "third"])
    panel.close()
    os.close(writer)
    data = b""
    with suppress(OSError):  # how Linux says that the other side is closed
        while piece := os.read(reader, 1 << 16):
            data += piece
    os.close(reader)
    written = data.decode()
    assert written.count("\x1b7") == written.count("\x1b8")
    assert re.findall(r"\x1b\[([\d;]*)r", written) == ["", "1;28", "1;27", ""]
    assert re.findall(r"\x1b\[(\d+);1H\x1b\[2Kthird", written) == ["30"]
    assert "\n" not in written


def test_nothing_is_written_without_a_terminal(training: Recorded, capfd: object) -> None:
    with live_list(training.folder, ()):
        pass
    assert capfd.readouterr() == ("", "")  # type: ignore[attr-defined]
