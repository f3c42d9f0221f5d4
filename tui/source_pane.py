"""The user's source, at the line that belongs to what is selected."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ..inspector.report import Collective
from ..parsers.source import Source
from .drawn_text import COMMUNICATES, Mark
from .highlight import of_python
from .painted import data
from .palette import collective_hue
from .text_view import TextView


class SourcePane(Vertical):
    """One file at a time: the script, or whichever file the selected stack frame is in."""

    ALLOW_MAXIMIZE = True

    def __init__(self) -> None:
        super().__init__()
        self._marks: dict[str, dict[int, Mark]] = {}
        self._note = self._shown_name = ""

    def compose(self) -> ComposeResult:
        yield Static("Source", id="source-title", classes="pane-title")
        yield TextView(id="source-text")

    @property
    def view(self) -> TextView:
        """The text."""
        return self.query_one(TextView)

    def show(self, source: Source, captured: bool) -> None:
        """Show a file, which was captured, or else read from disk and may have changed since."""
        if self.view.source is source:
            return
        self._shown_name = source.name
        self._note = "" if captured else "  as it is on disk now"
        self.miss("")
        self.view.show(source, of_python(source))
        self._show_marks()

    def miss(self, file: str) -> None:
        """Say in the title which file should be shown and cannot be; none if it is empty."""
        name = data(os.path.basename(self._shown_name) or "Source", "bold")
        missing = f"  {os.path.basename(file)} is not in the capture" if file else self._note
        self.query_one("#source-title", Static).update(Content.assemble(" ", name, data(missing, "$warning")))

    def shows(self, file: str) -> bool:
        """Return whether this file is shown."""
        return os.path.normpath(file) == os.path.normpath(self.view.source.name)

    def mark(self, collectives: Iterable[Collective], hues: Mapping[str, str]) -> None:
        """Mark the lines that collectives come from, in whichever file is shown, in the colours of their axes."""
        lines: dict[str, dict[int, Mark]] = {}
        for collective in collectives:
            innermost = {os.path.normpath(frame.file): frame.line for frame in reversed(collective.source.stack)}
            for file, line in innermost.items():
                lines.setdefault(file, {}).setdefault(line - 1, (COMMUNICATES, collective_hue(collective.axes, hues)))
        self._marks = lines
        self._show_marks()

    def _show_marks(self) -> None:
        self.view.marks = self._marks.get(os.path.normpath(self.view.source.name), {})

    def link(self, lines: frozenset[int], first: int | None) -> None:
        """Show which lines, counted from 1, belong to what is selected, and bring one into view."""
        self.view.linked = frozenset(line - 1 for line in lines)
        if first is not None:
            self.view.go_to(first - 1)
