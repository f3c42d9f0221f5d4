"""Themes: which one there is to begin with, and that nothing is told by colour alone."""

from __future__ import annotations

import pytest
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.palette import DARK, HIGH_CONTRAST, LIGHT, THEMES, usual_theme, variables
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
def test_colours_can_be_read_on_their_background(theme: Theme) -> None:
    """By WCAG's formula, 4.5 for text."""
    background = Color.parse(theme.background)
    told = {name: colour for name, colour in variables(theme).items() if name.startswith(("hue-", "code-"))}
    assert all(contrast(background, colour) >= 4.5 for colour in told.values())


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
def test_a_line_of_the_cursor_shows_its_number_in_sixteen_colours(name: str) -> None:
    told = variables(BUILTIN_THEMES[name])
    assert told["line-cursor"] not in {colour for each, colour in told.items() if each != "line-cursor"}


def contrast(one: Color, other: str) -> float:
    lights = sorted((luminance(one), luminance(Color.parse(other))))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: Color) -> float:
    parts = (part / 255 for part in colour.rgb)
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["shardscope-light", "ansi-dark"])
async def test_the_focus_has_a_shape(theme: str) -> None:
    app = ShardscopeApp((kept(),))
    async with app.run_test(size=(120, 40)) as pilot:
        driver = Driver(app, pilot)
        await driver.ready()
        app.theme = theme
        await driver.press("3")
        await driver.until(lambda: driver.text.splitlines()[2].startswith("━"))
        assert "▶" in driver.text
        await driver.press("tab")
        await driver.until(lambda: driver.text.splitlines()[2].startswith("─"))
        assert driver.text.splitlines()[2].rstrip().endswith("━")
        assert "▶" not in driver.text
