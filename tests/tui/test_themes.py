"""Themes: which one there is to begin with, and that nothing is told by colour alone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from shardscope.inspector.on_screen import analyses
from shardscope.inspector.render.html.elements import style
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.cursor_view import CursorView
from shardscope.tui.painted import DARK, HIGH_CONTRAST, LIGHT, THEMES, usual_theme, variables
from textual import constants
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from .conftest import Driver
from .test_looks import kept

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({}, DARK.name),
        ({"COLORFGBG": "0;15"}, LIGHT.name),
        ({"COLORFGBG": "15;0"}, DARK.name),
        ({"TEXTUAL_THEME": "light"}, LIGHT.name),
        ({"TEXTUAL_THEME": "contrast", "COLORFGBG": "0;15"}, HIGH_CONTRAST.name),
        ({"TEXTUAL_THEME": "ansi-dark"}, "ansi-dark"),
        ({"TEXTUAL_THEME": "no such"}, DARK.name),
    ],
)
def test_the_theme_to_begin_with(environment: dict[str, str], theme: str) -> None:
    assert usual_theme(environment, {each.name for each in THEMES} | {"ansi-dark"}) == theme


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_colours_can_be_read_on_every_background(theme: Theme) -> None:
    """By WCAG's formula, 4.5 for text: on panels, and on the lines of the cursor and of what belongs to it, too."""
    colours = variables(theme)
    backgrounds = [theme.background, theme.surface, theme.panel, colours["line-cursor"], colours["line-linked"]]
    words = [colour for name, colour in colours.items() if not name.startswith("line-")]
    words += [theme.primary, theme.secondary, theme.warning, theme.error, theme.success, theme.foreground]
    words.append(theme.variables["text-muted"])
    assert all(contrast(Color.parse(back), word) >= 4.5 for back in backgrounds for word in words if back and word)


@pytest.mark.parametrize("dark", [False, True])
def test_colours_of_a_page_can_be_read(dark: bool) -> None:
    """Text on the page and on what is raised, and the names in the bars and devices, in the background's colour."""
    found = style().partition("@media (prefers-color-scheme: dark)")[2 if dark else 0].partition("@media")[0]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", found))
    for back in ("back", "raised"):
        for word in ("text", "aside", "good", "warning", "error", "axis"):
            assert contrast(Color.parse(colours[back]), colours[word]) >= 4.5, (back, word)
    assert contrast(Color.parse(colours["line"]), colours["text"]) >= 4.5
    for filled in ("compute", "links", "copies", "error", *(f"g{number}" for number in range(8))):
        assert contrast(Color.parse(colours[filled]), colours["back"]) >= 4.5, filled


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
def test_a_line_of_the_cursor_shows_its_number_in_sixteen_colours(name: str) -> None:
    colours = variables(BUILTIN_THEMES[name])
    assert colours["line-cursor"] not in {colour for each, colour in colours.items() if each != "line-cursor"}


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
async def test_the_line_of_the_cursor_is_reversed_in_sixteen_colours(name: str) -> None:
    """The terminal's own two colours: coloured words on a coloured line may be of the same colour."""
    async with collectives_in(name) as driver:
        for view in driver.screen.query(CursorView):
            if not view.display or not view.region.height:
                continue
            lines = [view.render_line(y) for y in range(view.scrollable_content_region.height)]
            under = [line for line in lines if line.text[:1] in ("▶", "▷")]
            for line in under:
                styles = [style for _, style, _ in line if style is not None]
                assert all(style.reverse and style.color is None and style.bgcolor is None for style in styles)
            assert under or not view.count, view


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
async def test_a_theme_that_is_named_in_full_has_its_colours(theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual itself reads the variable, before it knows the theme."""
    monkeypatch.setenv("TEXTUAL_THEME", theme.name)
    monkeypatch.setattr(constants, "DEFAULT_THEME", theme.name)
    app = ShardscopeApp((kept(),), analyses())
    async with app.run_test(size=(80, 24)):
        assert app.theme == theme.name
        assert app.screen.styles.background == Color.parse(str(theme.background))


@asynccontextmanager
async def collectives_in(theme: str) -> AsyncIterator[Driver]:
    """The screen with the table of collectives, in a theme."""
    app = ShardscopeApp((kept(),), analyses())
    async with app.run_test(size=(120, 40)) as pilot:
        driver = Driver(app, pilot)
        await driver.ready()
        app.theme = theme
        await driver.press("3")
        yield driver


def contrast(one: Color, other: str) -> float:
    lights = sorted((luminance(one), luminance(Color.parse(other))))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: Color) -> float:
    parts = (part / 255 for part in colour.rgb)
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["shardscope-light", "ansi-dark"])
async def test_the_focus_has_a_shape(theme: str) -> None:
    async with collectives_in(theme) as driver:
        await driver.until(lambda: driver.text.splitlines()[2].startswith("━"))
        assert "▶" in driver.text
        await driver.press("tab")
        await driver.until(lambda: driver.text.splitlines()[2].startswith("─"))
        assert driver.text.splitlines()[2].rstrip().endswith("━")
        assert "▶" not in driver.text
