"""Screens over the main one: a finding in full, and a short list of which one thing is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import OptionList, Static

from ..inspector.report import Finding, Report
from ..inspector.report.edits import diff_of
from .entry_details import entry_details
from .key_footer import KeyFooter
from .painted import data

MARGIN = 8
"""Columns beside the text, with the scroll bar."""

MAX_WIDTH = 120
"""Columns of a line of prose; longer ones are hard to read."""


class ReadingScreen(Screen[str]):
    """One finding after the other; it ends with what is to be done with the one that is shown: `code`, or `apply`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close('')", "back"),
        Binding("enter", "close('code')", "code", tooltip="go to the code"),
        Binding("n", "step(1)", "next", tooltip="next finding"),
        Binding("N,p", "step(-1)", "finding before", show=False),
        Binding("y", "copy", "copy patch", tooltip="copy the patch"),
        Binding("A", "close('apply')", "try on a copy", tooltip="apply to a copy, capture that, and compare"),
    ]

    def __init__(self, report: Report, found: Sequence[Finding], shown: int) -> None:
        super().__init__()
        self._report = report
        self._found = found
        self._shown = shown

    @property
    def finding(self) -> Finding:
        return self._found[self._shown]

    def compose(self) -> ComposeResult:
        yield Static(id="reading-title", classes="pane-title")
        with VerticalScroll(id="reading"):
            yield Static(id="reading-text")
        yield KeyFooter()

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = min(max(self.size.width - MARGIN, 40), MAX_WIDTH)
        title = data(f" finding {self._shown + 1} of {len(self._found)}", "$text-muted")
        self.query_one("#reading-title", Static).update(title)
        lines = Content("\n").join(entry_details(self._report, self.finding, width))
        self.query_one("#reading-text", Static).update(lines)

    def action_step(self, direction: int) -> None:
        self._shown = (self._shown + direction) % len(self._found)
        self.query_one("#reading", VerticalScroll).scroll_home(animate=False)
        self._draw()

    def action_copy(self) -> None:
        """Copy the patch; without one, the message and the fix."""
        patch = "\n".join(diff_of(self._report.program, self.finding.proposal))
        fix = "".join(f"\nfix: {each.title}" for each in self.finding.fixes[:1])
        self.app.copy_to_clipboard(f"{patch}\n" if patch else f"{self.finding.message}{fix}")
        self.notify("copied the patch" if patch else "copied the message: this finding has no patch")

    def action_close(self, what: str) -> None:
        self.dismiss(what)


class ChoiceScreen(ModalScreen[int | None]):
    """Ends with the number of what was chosen; None where nothing was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "close", show=False),
        Binding("j", "move('down')", "down", show=False),
        Binding("k", "move('up')", "up", show=False),
        *(Binding(str(number), f"pick({number - 1})", "choose", show=False) for number in range(1, 10)),
    ]

    def __init__(self, question: str, choices: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._question = question
        self._choices = choices

    def compose(self) -> ComposeResult:
        longest = max(len(name) for name, _ in self._choices)
        with Vertical(id="choice"):
            yield Static(self._question, classes="summary")
            yield OptionList(
                *(
                    Content.assemble(
                        (f"{number} ", "$primary"),
                        (f"{name:<{longest}}  ", "bold"),
                        data(" ".join(text[:1000].split())[:200], "$aside"),
                    )
                    for number, (name, text) in enumerate(self._choices, 1)
                ),
                compact=True,
            )

    def action_move(self, direction: str) -> None:
        options = self.query_one(OptionList)
        (options.action_cursor_down if direction == "down" else options.action_cursor_up)()

    def action_pick(self, number: int) -> None:
        if number < len(self._choices):
            self.dismiss(number)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)
