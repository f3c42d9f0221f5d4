"""Descriptions of the keys, taken from the bindings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.keys import format_key
from textual.screen import ModalScreen
from textual.widgets import Static

from .painted import title

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
