"""The door to a terminal for all that rich and Textual draw: pieces of lines, whatever made them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment

from .printable import printable


def safe_segment(segment: Segment) -> Segment:
    """The same piece of a line in as many columns, with no unsafe characters, and no link that a style hides."""
    text, style, control = segment
    shown = printable(text)
    if shown != text:
        shown = "\n".join(map(_fitted, shown.split("\n"), text.split("\n")))
    elif style is None or style.link is None:
        return segment
    return Segment(shown, None if style is None else style.update_link(None), control)


def _fitted(shown: str, text: str) -> str:
    return set_cell_size(shown, cell_len(text))


class SafeConsole(Console):
    """A console of rich that prints no text that would control the terminal, whatever it is given to print."""

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """Return the segments of something, made safe."""
        for segment in super().render(*arguments, **options):
            yield segment if segment.control else safe_segment(segment)
