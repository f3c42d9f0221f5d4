"""The line at the bottom where a word or a file name is typed, the screens that have it, and the help of their keys."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.keys import format_key
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from ..inspector.capture.file import save
from ..inspector.capture.model import Capture, CaptureError
from .painted import title
from .row_table import RowTable
from .search import Search, Searchable
from .text_view import TextView

WORDS = """\
The panes are linked: whatever is selected in one, the others show the source line, the operations and the collectives \
that belong to it. ▶ is the cursor, ┃ what is linked to it, ● a line that communicates, in the colour of its mesh axis.

A collective in the table is what one device takes part in: its own operand and result types, the bytes that it sends \
(wire) per execution, how often it runs, who asked for it, and in which pass of the derivative.

Among the values, 8→1 counts the different ones that devices hold before and after an equation, in each iteration of \
its loop; ▲ is where they first differ and should be equal."""

KEY = 17
"""Columns of the keys."""


class Help(ModalScreen[None]):
    """Closed by the key that opened it, and by Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "dismiss", "close", show=False)]

    def __init__(self, sections: Sequence[tuple[str, Sequence[BindingType]]], words: str) -> None:
        super().__init__()
        self._sections = sections
        self._words = words

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(Content("\n").join(self._lines()))

    def _lines(self) -> Iterator[Content]:
        yield Content(self._words)
        for name, bindings in self._sections:
            yield Content("")
            yield title(name)
            for binding in bindings:
                if isinstance(binding, Binding) and binding.description:
                    keys = " ".join(map(format_key, binding.key.split(",")))
                    yield Content.assemble((f"{keys:<{KEY}}", "$primary"), binding.tooltip or binding.description)


Purpose = Literal["search", "save"]

QUESTIONS: dict[Purpose, str] = {"search": "/", "save": "save as"}


class Prompt(Horizontal):
    """Hidden until something is asked; Escape closes it, and gives the focus back."""

    # What is typed at once, while the screen is busy, is for whom the key before it gives the focus to.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "go on", show=False, priority=True),
        Binding("escape", "close", "close", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._purpose: Purpose = "search"
        self._target: Searchable | None = None
        self._capture = Capture()
        self._search: Search | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="prompt-question")
        yield Input(id="prompt-input", compact=True, select_on_focus=True)
        yield Static(id="prompt-status")

    def search(self, target: Searchable) -> None:
        self._ask("search", target, self._search.needle if self._search is not None else "")
        self._search = Search(target, "")

    def save(self, target: Searchable, capture: Capture) -> None:
        self._capture = capture
        name = "capture" if capture.subject is None else capture.subject.function.rpartition(".")[2]
        self._ask("save", target, f"{name}.shardscope")

    def step(self, direction: int) -> None:
        if self._search is not None:
            self._tell(self._search.step(direction))

    def action_close(self) -> None:
        """Hide it; that ends a search."""
        if self._search is not None and isinstance(self._search.target, TextView):
            self._search.target.needle = ""
        self._search = None
        self._give_back()

    def _ask(self, purpose: Purpose, target: Searchable, text: str = "") -> None:
        self._purpose, self._target = purpose, target
        self.display = True
        self.query_one("#prompt-question", Static).update(QUESTIONS[purpose])
        self._tell("")
        field = self.query_one(Input)
        with field.prevent(Input.Changed):
            field.value = text
        self.screen.set_focus(field)

    def _tell(self, status: str) -> None:
        self.query_one("#prompt-status", Static).update(status)

    def _give_back(self) -> None:
        self.display = False
        self._focus_target()

    def _focus_target(self) -> None:
        if self._target is not None:
            self.screen.set_focus(self._target)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display and self._purpose == "search":
            self._find(event.value)

    def action_submit(self) -> None:
        """Do with what was typed what it was asked for."""
        text = self.query_one(Input).value.strip()
        match self._purpose:
            case "search":
                # The line stays, for its status; the keys go to the pane again.
                self._focus_target()
                return
            case "save" if text:
                self._save(os.path.expanduser(text))
        self._give_back()

    @work(exclusive=True, group="search")
    async def _find(self, needle: str) -> None:
        if self._target is not None:
            self._search = Search(self._target, needle)
            await self._search.run(self._tell)

    def _save(self, path: str) -> None:
        try:
            save(self._capture, path)
        except CaptureError as error:
            self.notify(str(error), severity="error", markup=False)
        else:
            self.notify(f"saved {path}; `shardscope open {path}` shows it again", markup=False)


ANYTHING = "every action, stage, finding; a number is a line"


class PromptedScreen(Screen[None]):
    """A screen that has a Prompt at the bottom. `PANES` are what can be shown alone, `words` are those of its help."""

    PANES: ClassVar[tuple[type[Widget], ...]] = ()

    words: ClassVar[str] = WORDS

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search", priority=True),
        Binding("n", "step(1)", "next match", show=False),
        Binding("N", "step(-1)", "match before", show=False),
        Binding("colon", "commands", "command", tooltip=ANYTHING, priority=True),
    ]

    ZOOM = Binding("z", "zoom", "zoom", tooltip="one pane on the full screen, and back")

    LAST = (
        Binding("escape", "back", "back", show=False, tooltip="end a search, a zoom; else go back"),
        Binding("question_mark", "help", "help"),
        Binding("q", "leave", "quit", tooltip="go back; quit if there is nothing to go back to"),
    )

    @property
    def focused_pane(self) -> Searchable:
        """The text or the table that keys are for."""
        return self.focused if isinstance(self.focused, Searchable) else self.usual_pane

    @property
    def usual_pane(self) -> Searchable:
        """The pane that is searched when no text or table has the focus."""
        return self.query_one(RowTable)

    def action_help(self) -> None:
        self.app.push_screen(Help(self.key_sections(), self.words))

    @classmethod
    def key_sections(cls) -> Sequence[tuple[str, Sequence[BindingType]]]:
        everywhere = (*PromptedScreen.BINDINGS, *cls.BINDINGS)
        return (("everywhere", everywhere), ("in the table", RowTable.BINDINGS), ("in a text", TextView.BINDINGS))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that come before all others leave what is typed alone."""
        return not (action in ("search", "commands") and isinstance(self.focused, Input))

    def action_commands(self) -> None:
        self.app.action_command_palette()

    def action_search(self) -> None:
        self.query_one(Prompt).search(self.focused_pane)

    def action_step(self, direction: int) -> None:
        self.query_one(Prompt).step(direction)

    def action_zoom(self) -> None:
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            pane = next((one for one in self.focused.ancestors_with_self if isinstance(one, self.PANES)), None)
            if pane is not None:
                self.maximize(pane, container=False)

    def action_back(self) -> None:
        """End a search, or a zoom; else go back to where one came from, if this is not all there is."""
        prompt = self.query_one(Prompt)
        if prompt.display:
            prompt.action_close()
        elif self.maximized is not None:
            self.minimize()
        elif self.is_over_another:
            self.dismiss()

    async def action_leave(self) -> None:
        if self.is_over_another:
            self.dismiss()
        else:
            await self.run_action("app.quit")

    @property
    def is_over_another(self) -> bool:
        """True if there is a screen to go back to."""
        return len(self.app.screen_stack) > 1
