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
