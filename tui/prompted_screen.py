"""What every screen of panes does: search in a pane, go to a line, show one pane alone."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from .prompt import Prompt
from .search import Searchable


class PromptedScreen(Screen[None]):
    """A screen that has a Prompt at the bottom. `PANES` are what can be shown alone."""

    PANES: ClassVar[tuple[type[Widget], ...]] = ()

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search"),
        Binding("n", "step(1)", "next match", show=False),
        Binding("N", "step(-1)", "match before", show=False),
        Binding("g", "go_to", "go to line"),
    ]

    ZOOM = Binding("z", "zoom", "zoom", tooltip="one pane on the whole screen, and back")

    @property
    def focused_pane(self) -> Searchable:
        """The text or the table that keys are for."""
        return self.focused if isinstance(self.focused, Searchable) else self.usual_pane

    @property
    def usual_pane(self) -> Searchable:
        """What is searched when no text or table has the focus."""
        raise NotImplementedError

    def action_search(self) -> None:
        """Ask what to search for, in the pane that has the focus."""
        self.query_one(Prompt).search(self.focused_pane)

    def action_step(self, direction: int) -> None:
        """Go to another match."""
        self.query_one(Prompt).step(direction)

    def action_go_to(self) -> None:
        """Ask for a line's number, in the text that has the focus."""
        self.query_one(Prompt).go_to(self.focused_pane)

    def action_zoom(self) -> None:
        """One pane on the whole screen, or all of them again."""
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            pane = next((one for one in self.focused.ancestors_with_self if isinstance(one, self.PANES)), None)
            if pane is not None:
                self.maximize(pane, container=False)

    def close_prompt(self) -> bool:
        """End a search; False if there is none."""
        prompt = self.query_one(Prompt)
        shown = bool(prompt.display)
        if shown:
            prompt.action_close()
        return shown
