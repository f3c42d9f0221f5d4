"""The line at the bottom where a word to search, a line number or a file name is typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

Purpose = Literal["search", "go to", "save"]

QUESTIONS: dict[Purpose, str] = {"search": "/", "go to": "line", "save": "save as"}


class Prompt(Horizontal):
    """Hidden until something is asked; Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "close", show=False)]

    @dataclass
    class Answered(Message):
        """The user typed something; `final` when Enter was pressed."""

        purpose: Purpose
        text: str
        final: bool

    class Closed(Message):
        """The user wants nothing more."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.purpose: Purpose = "search"

    def compose(self) -> ComposeResult:
        yield Static(id="prompt-question")
        yield Input(id="prompt-input", compact=True, select_on_focus=True)
        yield Static(id="prompt-status")

    def ask(self, purpose: Purpose, text: str = "") -> None:
        """Open it, with something to begin from."""
        self.purpose = purpose
        self.display = True
        self.query_one("#prompt-question", Static).update(QUESTIONS[purpose])
        self.tell("")
        field = self.query_one(Input)
        with field.prevent(Input.Changed):
            field.value = text
        field.focus()

    def tell(self, status: str) -> None:
        """Say how it goes, to the right."""
        self.query_one("#prompt-status", Static).update(status)

    def close(self) -> None:
        """Hide it."""
        self.display = False

    def action_close(self) -> None:
        """Escape."""
        self.close()
        self.post_message(self.Closed())

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self.post_message(self.Answered(self.purpose, event.value, False))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Answered(self.purpose, event.value, True))
