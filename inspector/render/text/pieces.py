"""What the sections of a text report are made of."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ...units import plural
from ..printable import printable


def section(title: str, lines: Sequence[RenderableType]) -> RenderableType:
    """A title, and what stands under it."""
    return Group(data(title, "bold"), *(Padding(line, (0, 0, 0, 2)) for line in lines))


def data(text: str, style: str = "") -> Text:
    """Text from outside: no markup and no escapes are taken from it."""
    return Text(printable(text), style)


def left_out(count: int, word: str, rest: str = "") -> Sequence[RenderableType]:
    """A line that tells how many are not shown, `and 2 more values`; none if all are. `rest` follows the word."""
    number = plural(count, f"more {word}") if word else f"{count:,} more"
    return [Text(f"and {number}{rest}", "dim")] if count > 0 else []
