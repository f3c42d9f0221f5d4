"""Every colour of the screen: two themes, and the variables that styles and widgets name.

Mesh axes and device groups take hues in a fixed order. Each hue exists three times: for dark and for light
backgrounds, where it has a contrast of at least 4.5 with the background, and as one of a terminal's own sixteen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from textual.theme import Theme

from ..parsers.sharding_syntax.mesh import AxisRef, MeshSyntax

DARK = Theme(
    name="shardscope-dark",
    primary="#6cb6ff",
    secondary="#8b9bb4",
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
    warning="#8a5a00",
    error="#b3263a",
    success="#1c7a35",
    foreground="#1d232b",
    background="#fbfbf9",
    surface="#f4f4f1",
    panel="#e6e7e4",
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
    panel="#444444",
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
_ON_LIGHT = ("#0a5fb4", "#a04e00", "#1c7a35", "#8a3aa8", "#0b7278", "#776400", "#b3363e", "#5a6472")
_OF_TERMINAL = (
    "ansi_bright_blue",
    "ansi_yellow",
    "ansi_green",
    "ansi_magenta",
    "ansi_cyan",
    "ansi_bright_yellow",
    "ansi_red",
    "ansi_white",
)

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
    colours = _OF_TERMINAL if theme.ansi else _ON_DARK if theme.dark else _ON_LIGHT
    hues = {f"hue-{number}": colour for number, colour in enumerate(colours)}
    code = {name: colours[HUES.index(hue)] for name, hue in _CODE.items()}
    if theme.ansi:
        aside, cursor = ("white", "bright_black") if theme.dark else ("bright_black", "bright_cyan")
        lines = {"aside": f"ansi_{aside}", "line-cursor": f"ansi_{cursor}", "line-linked": "ansi_default"}
    elif theme.dark:
        lines = {"aside": "#7f8a99", "line-cursor": "#2b3a4d", "line-linked": "#1c2733"}
    else:
        lines = {"aside": "#69727e", "line-cursor": "#cfe0f2", "line-linked": "#e6eef7"}
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
