"""The keys in the last line: those that work, as many as there is room for, and clicks on them."""

from __future__ import annotations

import pytest
from shardscope.tui.key_footer import KeyFooter
from shardscope.tui.prompt import Help

from .conftest import Opened
from .test_looks import kept

pytestmark = pytest.mark.once


async def test_keys_are_pressed_by_clicks_and_follow_the_focus(opened: Opened) -> None:
    async with opened(kept(), size=(60, 24)) as driver:
        await driver.ready()
        await driver.until(lambda: "? help" in driver.text.splitlines()[-1])
        line = driver.text.splitlines()[-1]
        bindings = {
            driver.app.get_key_display(each.binding): each.binding for each in driver.screen.active_bindings.values()
        }
        shown = [word for word in line.split() if word in bindings]
        assert set(line.split()) <= {*shown, *" ".join(bindings[key].description for key in shown).split()}
        assert "q" in shown
        await driver.pilot.hover(KeyFooter, offset=(line.index("? help"), 0))
        footer = driver.screen.query_one(KeyFooter)
        assert footer.hovered == "question_mark"
        await driver.pilot.click(KeyFooter, offset=(line.index("? help") + 2, 0))
        await driver.until(lambda: isinstance(driver.app.screen, Help))
        await driver.press("escape")
        await driver.press("4")
        await driver.until(lambda: driver.text.splitlines()[-1] != line)
        assert "? help" in driver.text.splitlines()[-1]
        await driver.pilot.hover(None, offset=(1, 1))
        await driver.until(lambda: footer.hovered is None)
