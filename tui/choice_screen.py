"""A short list over the screen, of which one thing is chosen: by its number, or by the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from .painted import data


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
        """Go up or down in the list."""
        options = self.query_one(OptionList)
        (options.action_cursor_down if direction == "down" else options.action_cursor_up)()

    def action_pick(self, number: int) -> None:
        """Choose by number."""
        if number < len(self._choices):
            self.dismiss(number)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)
