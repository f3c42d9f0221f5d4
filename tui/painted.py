"""Tables of reports, and texts from outside, as what the screen shows; and every colour of it.

There are themes, and variables that styles and widgets name. Mesh axes and device groups take hues in a fixed order.
Each hue exists three times: for dark and for light backgrounds, where it has a contrast of at least 4.5 with the
background, and as one of a terminal's own sixteen.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from msgspec import field
from textual.content import Content
from textual.theme import Theme

from ..inspector.render.printable import printable
from ..inspector.render.table import Cell, Column, Piece, Role, Table, amount_in, pieces, plain_text
from ..inspector.render.tables.findings import ROLES
from ..inspector.report import Severity
from ..parsers.record import Record
from ..parsers.sharding_syntax.mesh import AxisRef, MeshSyntax

DARK = Theme(
    name="shardscope-dark",
    primary="#6cb6ff",
    secondary="#9fadc4",
    accent="#6cb6ff",
    warning="#e6b450",
    error="#f47f7f",
    success="#7ccf8a",
    foreground="#d5dbe3",
    background="#10141a",
    surface="#151a21",
    panel="#1f2630",
    dark=True,
    variables={"text-muted": "#a3adba"},
)

LIGHT = Theme(
    name="shardscope-light",
    primary="#0a5fb4",
    secondary="#4d5b70",
    accent="#0a5fb4",
    warning="#7f5300",
    error="#b3263a",
    success="#176b2d",
    foreground="#1d232b",
    background="#fbfbf9",
    surface="#f4f4f1",
    panel="#ecedea",
    dark=False,
    variables={"text-muted": "#4d5763"},
)

HIGH_CONTRAST = Theme(
    name="shardscope-contrast",
    primary="#7fd4ff",
    secondary="#ffffff",
    accent="#7fd4ff",
    warning="#ffd75f",
    error="#ff8787",
    success="#87ff87",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#2b2b2b",
    dark=True,
    variables={"text-muted": "#dddddd"},
)

THEMES = (DARK, LIGHT, HIGH_CONTRAST)


def usual_theme(environment: Mapping[str, str], available: Collection[str]) -> str:
    """The theme to begin with: TEXTUAL_THEME, in full or without `shardscope-`, else by the terminal's background.

    Terminals that set COLORFGBG end it with the colour of the background, of which 7 and 15 are light.
    """
    wanted = environment.get("TEXTUAL_THEME", "")
    for name in (wanted, f"shardscope-{wanted}"):
        if name in available:
            return name
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in ("7", "15") else DARK.name


HUES = ("blue", "orange", "green", "magenta", "cyan", "yellow", "red", "grey")
"""In the order in which axes and groups take them; after the last one they begin again."""

_ON_DARK = ("#6cb6ff", "#f0a45d", "#7ccf8a", "#d695e8", "#5ccfd6", "#e3cf65", "#f08a8a", "#a9b4c2")
_ON_LIGHT = ("#0a5fb4", "#974900", "#176b2d", "#8a3aa8", "#0a686d", "#6b5a00", "#a92f37", "#56606d")
_DARK_TERMINAL = ("bright_blue", "yellow", "green", "magenta", "cyan", "bright_yellow", "red", "white")
_LIGHT_TERMINAL = ("blue", "red", "green", "magenta", "cyan", "bright_magenta", "bright_red", "bright_black")
"""Names of a terminal's own sixteen; yellow and white are not legible on white."""

_CODE = {
    "code-operation": "blue",
    "code-collective": "orange",
    "code-type": "cyan",
    "code-string": "green",
    "code-keyword": "magenta",
    "code-groups": "orange",
}
"""Kinds of tokens and their hues; others are drawn in the text's own colour, or dimmed."""


def variables(theme: Theme) -> dict[str, str]:
    """The variables `$hue-N`, `$code-…`, `$aside` and `$line-…` on a theme's background."""
    if theme.ansi:
        colours = tuple(f"ansi_{name}" for name in (_DARK_TERMINAL if theme.dark else _LIGHT_TERMINAL))
    else:
        colours = _ON_DARK if theme.dark else _ON_LIGHT
    hues = {f"hue-{number}": colour for number, colour in enumerate(colours)}
    code = {name: colours[HUES.index(hue)] for name, hue in _CODE.items()}
    if theme.ansi:
        aside, cursor = ("white", "bright_black") if theme.dark else ("bright_black", "bright_cyan")
        lines = {"aside": f"ansi_{aside}", "line-cursor": f"ansi_{cursor}", "line-linked": "ansi_default"}
    elif theme.dark:
        lines = {"aside": "#97a2b0", "line-cursor": "#273648", "line-linked": "#1c2733"}
    else:
        lines = {"aside": "#59626e", "line-cursor": "#d8e6f5", "line-linked": "#e9f0f8"}
    return hues | code | lines


def hue(number: int) -> str:
    """The variable of the group or axis of that number."""
    return f"$hue-{number % len(HUES)}"


def axis_hues(meshes: Iterable[MeshSyntax]) -> Mapping[str, str]:
    """The variable of each axis, by its name: an axis keeps its colour wherever it is shown."""
    names = dict.fromkeys(name for mesh in meshes for name, _ in mesh.axes)
    return {name: hue(number) for number, name in enumerate(names)}


def collective_hue(axes: Sequence[AxisRef] | None, hues: Mapping[str, str]) -> str:
    """The variable of what communicates over axes: that of the first one, grey where there is none."""
    return axis_hue(axes[0].name, hues) if axes else f"$hue-{HUES.index('grey')}"


def axis_hue(axis: str, hues: Mapping[str, str]) -> str:
    """The variable of an axis, by its name; none for an axis of no mesh that is shown."""
    return hues.get(axis, "")


LABEL = 10
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
    indent = max(LABEL, len(label) + 1)
    for number, line in enumerate(folded(content, width - indent)):
        yield Content.assemble((f"{'' if number else label:<{indent}}", "$aside"), line)


def folded(content: Content, width: int) -> list[Content]:
    """Lines no wider than that; broken between words if there are any."""
    return [line for part in content.split("\n") or [content] for line in part.wrap(max(width, 8))]


STYLES: Mapping[Role, str] = {
    "strong": "bold",
    "aside": "$aside",
    "good": "$success",
    "warning": "$warning",
    "error": "bold $error",
    "added": "$success",
    "removed": "$error",
    "changed": "$warning",
}


def severity_style(severity: Severity) -> str:
    """The style of a finding's severity."""
    return STYLES[ROLES[severity]]


def columns_of(table: Table) -> tuple[Column, ...]:
    """Return the columns of the screen."""
    return tuple(column for column in table.columns if column.where != "documents")


class Row(Record, frozen=True):
    """One row: `key` says what it is about. It is painted when it is drawn: of a long table few rows ever are.

    The cells of one that `spans` are a text across all columns.
    """

    key: Hashable
    given: tuple[Cell, ...]
    hues: Mapping[str, str] = field(default_factory=dict)
    spans: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(map(_text, self.given))

    @property
    def cells(self) -> tuple[Content, ...]:
        return tuple(content(cell, self.hues) for cell in self.given)

    def order(self, column: int) -> tuple[int, float, str]:
        """Its place among others: the largest number first, then texts, then empty cells."""
        amount, text = amount_in(self.given[column]), _text(self.given[column]).strip().lower()
        return (0, -amount, text) if amount is not None else (1 if text else 2, 0.0, text)


def rows_of(table: Table, hues: Mapping[str, str], keys: Sequence[Hashable] | None = None) -> list[Row]:
    """All rows, each by its key; by its number where none are given."""
    shown = [number for number, column in enumerate(table.columns) if column.where != "documents"]
    return [
        Row(key, tuple(row.cells[column] for column in shown), hues)
        for key, row in zip(range(len(table.rows)) if keys is None else keys, table.rows, strict=True)
    ]


def content(cell: Cell, hues: Mapping[str, str]) -> Content:
    """A cell in colours, on one line."""
    return Content("").join(_painted(piece, hues) for piece in pieces(cell))


def _text(cell: Cell) -> str:
    return printable(plain_text(cell).replace("\n", " "))


def _painted(piece: Piece, hues: Mapping[str, str]) -> Content:
    style = f"bold {axis_hue(piece.axis, hues)}" if piece.role == "axis" else STYLES.get(piece.role, "")
    return data(piece.text.replace("\n", " "), style)
