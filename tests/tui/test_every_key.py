"""Each key that the help and the footer name does something: what it does is listed here, and tried."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shardscope.tui.inspect_pane import InspectPane
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.prompt import Prompt
from shardscope.tui.stage_pane import StagePane
from shardscope.tui.tables_pane import TablesPane
from textual.binding import Binding

from ..conftest import SampleCapture
from .conftest import Driver, Opened
from .test_looks import kept, with_everything

pytestmark = pytest.mark.once

Sees = Callable[[MainScreen], object]


def focus(screen: MainScreen) -> object:
    return None if screen.focused is None else screen.focused.id


def tab(screen: MainScreen) -> object:
    return screen.query_one(TablesPane).chosen


def stage(screen: MainScreen) -> object:
    return screen.stage


def selected(screen: MainScreen) -> object:
    return screen.selected


def position(screen: MainScreen) -> object:
    return getattr(screen.focused, "cursor", None)


def scrolled(screen: MainScreen) -> object:
    return None if screen.focused is None else screen.focused.scroll_offset


def frame(screen: MainScreen) -> object:
    return screen.frame_number


def stage_line(screen: MainScreen) -> object:
    return screen.query_one(StagePane).view.cursor


def prompt(screen: MainScreen) -> object:
    return screen.query_one(Prompt).display


def zoomed(screen: MainScreen) -> object:
    return screen.maximized


def top(screen: MainScreen) -> object:
    return type(screen.app.screen), len(screen.app._notifications)


def drawn(screen: MainScreen) -> object:
    return "\n".join("".join(each.text for each in line) for line in screen._compositor.render_strips())


def inspected(screen: MainScreen) -> object:
    return str(screen.query_one(InspectPane).query_one("#inspect-text").render())


def twice(screen: MainScreen) -> object:
    return position(screen)


def folds(screen: MainScreen) -> object:
    view = screen.query_one(StagePane).view
    return view.wrapped, view.lines.folding.active, view.lines.folding.count


CODE = ("3", "enter", "home")
"""To the text of the stage."""

FLOWS: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, Sees], ...]], ...] = (
    ("everywhere", ("2",), (*((key, tab) for key in "1234567890Pi"), ("ctrl+o", tab), ("alt+right", tab))),
    ("everywhere", ("1",), (("alt+left", tab), ("tab", focus), ("shift+tab", focus))),
    ("everywhere", ("1",), (("less_than_sign", stage), ("greater_than_sign", stage))),
    ("everywhere", ("1",), (("z", zoomed), ("escape", zoomed), ("slash", prompt), ("escape", prompt), ("s", prompt))),
    ("everywhere", ("1",), (("r", top), ("d", top), ("A", top), ("e", top), ("colon", top))),
    ("everywhere", ("3",), (("right_square_bracket", frame), ("left_square_bracket", frame))),
    ("everywhere", ("3",), (("c", selected), ("question_mark", top))),
    ("everywhere", ("3", "y"), ()),
    ("in a table", ("4",), tuple((key, position) for key in ("down", "j", "pagedown", "ctrl+f", "ctrl+d", "end"))),
    ("in a table", ("4", "end"), tuple((key, position) for key in ("up", "k", "pageup", "ctrl+b", "ctrl+u", "home"))),
    ("in a table", ("4",), (("G", position), ("g", twice), ("b", drawn))),
    ("in the shardings", ("4",), (("comma", drawn), ("full_stop", drawn), ("F", drawn))),
    ("in the shardings", ("4", "comma"), (("equals_sign", drawn),)),
    ("in the collectives", ("3",), (("F", drawn), ("F", drawn))),
    ("in a table", ("3",), (("enter", focus),)),
    ("in a text", CODE, tuple((key, position) for key in ("down", "j", "pagedown", "ctrl+f", "ctrl+d", "end"))),
    ("in a text", (*CODE, "end"), tuple((key, position) for key in ("up", "k", "pageup", "ctrl+b", "ctrl+u", "home"))),
    ("in a text", CODE, (("G", position), ("g", twice))),
    ("in a text", CODE, tuple((key, scrolled) for key in ("right", "l", "L", "left", "h", "H"))),
    ("in a text", CODE, (("w", folds), ("m", folds), ("w", folds), ("m", folds))),
    ("in a text", (*CODE, "down", "down"), (("space", folds),)),
)
"""Where keys work, what is pressed to get there, and then one key after the other with what it changes."""

ELSEWHERE = {
    "everywhere": {
        "n": "test_keys: search",
        "N": "test_keys: search",
        "y": "test_edit_loop: copying",
        "S": "test_edit_loop: searching",
        "q": "test_terminal_door",
        "ctrl+i": "terminals send it as Tab",
        "o": "test_the_next_linked_line",
        "comma": "test_devices",
        "full_stop": "test_devices",
    },
    "in the collectives": {"space": "test_links: unfolding"},
    "in what is selected": dict.fromkeys(("shift+left", "shift+right", "shift+up", "shift+down"), "test_arrays_move"),
}
"""Keys that other tests try."""


def test_every_key_is_listed() -> None:
    for section, bindings in MainScreen.key_sections():
        keys = {key for each in bindings if isinstance(each, Binding) for key in each.key.split(",")}
        tried = {key for name, _, presses in FLOWS if name == section for key, _ in presses}
        assert keys == tried | ELSEWHERE.get(section, {}).keys(), section


async def test_every_key_has_its_effect(opened: Opened) -> None:
    wrong = []
    async with opened(with_everything(kept()), size=(120, 40)) as driver:
        await driver.ready()
        for section, before, presses in FLOWS:
            await to_the_start(driver)
            await driver.press(*before)
            for key, sees in presses:
                main, seen = driver.screen, sees(driver.screen)
                await driver.press(*(("g", "g") if sees is twice else (key,)))
                try:
                    await driver.until(lambda sees=sees, main=main, seen=seen: sees(main) != seen)
                except AssertionError:
                    wrong.append((section, before, key))
    assert not wrong


async def test_the_next_linked_line(opened: Opened) -> None:
    async with opened(kept(), size=(120, 40)) as driver:
        await driver.ready()
        await driver.source()
        view = driver.screen.query_one(StagePane).view
        await driver.press("home", "slash", *"psum_scatter(", "enter")
        await driver.until(lambda: len(view.linked) > 1)
        lines = sorted(view.linked)
        await driver.press("tab")
        await driver.until(lambda: view.has_focus)
        seen = []
        for _ in lines:
            await driver.press("o")
            seen.append(view.cursor)
        assert sorted(seen) == lines
        assert view.linked == frozenset(lines)


async def test_arrays_move(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("pipeline:loss"), size=(120, 40)) as driver:
        await driver.ready()
        await driver.press("7", "tab")
        pane = driver.screen.query_one(InspectPane)
        assert pane.has_focus
        for key, moved in (("right", (0, 1)), ("down", (1, 1)), ("left", (1, 0)), ("up", (0, 0))):
            await driver.press(f"shift+{key}")
            rows, columns = pane._window.top, pane._window.left
            assert (bool(rows), bool(columns)) == tuple(map(bool, moved))


async def to_the_start(driver: Driver) -> None:
    """Close what is open."""
    while not isinstance(driver.app.screen, MainScreen):
        await driver.press("escape")
    driver.app.clear_notifications()
    await driver.press("escape")
    view = driver.screen.query_one(StagePane).view
    view.wrapped, view.lines.folding.active = False, True
