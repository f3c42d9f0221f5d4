"""What the contents of panes are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from textual.content import Content

from ..inspector.render.printable import printable
from ..parsers.sharding_syntax.mesh import AxisRef
from .palette import axis_hue

LABEL = 9
"""Columns of the label of a fact."""


def data(text: str, style: str = "") -> Content:
    """Text from outside: no markup and no escapes are taken from it."""
    return Content.styled(printable(text), style)


def axes_content(axes: Sequence[AxisRef] | Sequence[str], hues: Mapping[str, str]) -> Content:
    """Axes, each in its colour."""
    refs = (AxisRef(axis) if isinstance(axis, str) else axis for axis in axes)
    return Content(", ").join(data(str(axis), f"bold {axis_hue(axis.name, hues)}") for axis in refs)


def title(text: str) -> Content:
    """The heading of a part of a pane."""
    return Content.styled(text, "bold $text-muted")


def fact(label: str, value: Content | str, width: int) -> Iterable[Content]:
    """A label, and beside it a value of as many lines as it needs; nothing for an empty value."""
    content = data(value) if isinstance(value, str) else value
    if not content.plain:
        return
    for number, line in enumerate(folded(content, width - LABEL)):
        yield Content.assemble((f"{'' if number else label:<{LABEL}}", "$aside"), line)


def folded(content: Content, width: int) -> list[Content]:
    """Lines no wider than that; broken between words if there are any."""
    return [line for part in content.split("\n") or [content] for line in part.wrap(max(width, 8))]
