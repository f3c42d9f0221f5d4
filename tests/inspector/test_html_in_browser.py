"""The page in a browser: drawn, filtered, gone to by a link, silent, and alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect, timeline
from shardscope.inspector.render.html import report_page

from tests.browser import CHROMIUM, browser

KEPT = Path(__file__).parent.parent / "tui" / "looks" / "fsdp_tp.capture"

WITH_TARGET = Path(__file__).parent.parent / "command" / "approved" / "target.capture"

ROWS = "[...document.querySelectorAll('#collectives tbody tr:not(.more)')]"
SEEN = ".filter(row => row.offsetParent !== null).length"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_page_is_drawn_filtered_and_linked_to(tmp_path: Path) -> None:
    report = inspect(load(str(KEPT)))
    file = tmp_path / "report.html"
    file.write_text(report_page(report), "utf-8")
    with browser(tmp_path / "profile") as page:
        page.open(f"{file.as_uri()}#collectives-2")
        page.until("document.querySelector('.scripted') !== null")
        rows = page.value(f"{ROWS}.length")
        assert rows >= 2
        assert page.value(f"{ROWS}{SEEN}") == rows
        opened = "[...document.querySelectorAll('#collectives .more')].map(each => each.classList.contains('open'))"
        assert page.value(opened) == [number == 1 for number in range(rows)]
        page.press("/")
        page.press("reduce-scatter")
        shown = page.value(f"{ROWS}.filter(row => !row.classList.contains('hidden')).map(row => row.textContent)")
        assert 0 < len(shown) < rows
        assert all("reduce-scatter" in row for row in shown)
        hidden = page.value(f"{ROWS}.find(row => row.classList.contains('hidden')).id")
        page.value(f"location.hash = '{hidden}'")
        page.until(f"{ROWS}{SEEN} === {rows}")
        assert page.value("document.documentElement.scrollWidth <= innerWidth")
        page.send("Emulation.setDeviceMetricsOverride", width=390, height=600, deviceScaleFactor=1, mobile=False)
        page.value("scrollTo(0, document.documentElement.scrollHeight)")
        page.value(f"location.hash = {ROWS}.find(row => row.id != '{hidden}').id")
        bottom = "document.querySelector('nav').getBoundingClientRect().bottom"
        page.until(f"document.querySelector(':target').getBoundingClientRect().top >= {bottom} - 1")
        assert page.said == [file.as_uri()]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_time_line_has_a_scale_and_names_where_there_is_room(tmp_path: Path) -> None:
    report = inspect(load(str(WITH_TARGET)))
    found = timeline(report.program)
    assert found is not None
    file = tmp_path / "report.html"
    file.write_text(report_page(report), "utf-8")
    with browser(tmp_path / "profile") as page:
        page.open(file.as_uri())
        page.until("document.querySelectorAll('.scale i').length > 2")
        bars = "[...document.querySelectorAll('.bar')]"
        named = page.value(f"{bars}.filter(bar => bar.textContent).length")
        zoom = "document.querySelector('.zoom')"
        page.value(f"{zoom}.value = 5; {zoom}.dispatchEvent(new Event('input'))")
        assert page.value(f"{bars}.filter(bar => bar.textContent).length") > named
        assert page.value(f"{bars}.every(bar => !bar.textContent || bar.offsetWidth > 40)")
        tick = "[...document.querySelectorAll('.scale i')].at(-1)"
        amount, unit = page.value(f"{tick}.textContent").split()
        at = page.value(f"{tick}.offsetLeft / {tick}.parentElement.offsetWidth")
        seconds = float(amount) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
        assert seconds == pytest.approx(at * found.total, rel=0.01)
        assert page.said == [file.as_uri()]
