"""The user's source, at the line that belongs to what is selected."""

from __future__ import annotations

import os
from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ..parsers.source import Source
from .highlight import of_python
from .pieces import data
from .text_view import TextView


class SourcePane(Vertical):
    """One file at a time: the script, or whichever file the selected stack frame is in."""

    ALLOW_MAXIMIZE = True

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
        name = data(os.path.basename(source.name), "bold")
        note = "" if captured else ("  as it is on disk now", "$warning")
        self.query_one("#source-title", Static).update(Content.assemble(" ", name, note))
        self.view.show(source, of_python(source))

    def mark(self, lines: Mapping[int, str]) -> None:
        """Mark the lines, counted from 1, that collectives come from, with their colours."""
        self.view.marks = {line - 1: hue for line, hue in lines.items()}

    def link(self, lines: frozenset[int], first: int | None) -> None:
        """Show which lines, counted from 1, belong to what is selected, and bring one into view."""
        self.view.linked = frozenset(line - 1 for line in lines)
        if first is not None:
            self.view.go_to(first - 1)
