"""The findings on the screen: what they say, where they lead, and those that are suppressed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture, Progress
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.on_screen import analyses
from shardscope.inspector.report.policy import EVERYTHING, Policy
from shardscope.inspector.trace_errors.explain import explained_or_tried
from shardscope.samples.catalogue import samples
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.reading_screen import ReadingScreen
from shardscope.tui.row_table import RowTable
from shardscope.tui.stage_pane import SourcePane, StagePane

from ..conftest import SampleCapture
from .conftest import Driver, Opened

pytestmark = pytest.mark.once


async def read(driver: Driver) -> None:
    """Go on from a finding that is read to its code."""
    await driver.until(lambda: isinstance(driver.app.screen, ReadingScreen))
    await driver.press("enter")
    await driver.until(lambda: isinstance(driver.app.screen, MainScreen))


async def test_from_a_finding_to_its_equation_and_line(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("missing_reduce_scatter:faulty"), size=(200, 50)) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        assert "1 note" in driver.text.splitlines()[0]
        await driver.press("2")
        await driver.until(lambda: "SS01  missing-reduce-scatter" in driver.text)  # before any other key
        await driver.press("home", "enter")
        await read(driver)
        assert driver.screen.stage == "jaxpr"
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: "psum_invariant[" in view.text_of(view.cursor))
        source = driver.screen.query_one(SourcePane).view
        assert "lax.psum(a @ b" in source.text_of(source.cursor)
        for words in (
            "SS01  missing-reduce-scatter",
            "lax.psum_scatter(a @ b, 'x'",
            "+    product = lax.psum_scatter(a @ b, 'x',",
        ):
            assert words in driver.text


async def test_a_finding_of_another_stage(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("full_rematerialization:faulty")) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        await driver.press("2", "home", "enter")
        await read(driver)
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: driver.screen.stage == "hlo" and "all-gather" in view.text_of(view.cursor))


async def test_suppressed_ones_come_last_and_are_not_counted(sample: SampleCapture) -> None:
    policy = Policy(elsewhere=(("*.py", frozenset(("SS01",))),), settings="pyproject.toml")
    app = ShardscopeApp((sample("missing_reduce_scatter:faulty"),), analyses(policy))
    async with app.run_test(size=(150, 45)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: isinstance(app.screen, MainScreen) and driver.screen.linked is not None)
        await driver.press("2", "home", "down")
        table = driver.screen.query_one("#findings", RowTable)
        assert [row.cells[0].plain for row in table.rows] == ["suppressed"]
        assert "2 Findings 3 " in driver.text  # and no number
        await driver.until(lambda: "in pyproject.toml" in driver.text)


async def test_no_findings(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("missing_reduce_scatter:repaired")) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        await driver.press("2", "down", "enter")
        assert driver.screen.query_one("#findings", RowTable).rows == ()


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="what is explained are messages of JAX 0.10")
async def test_why_a_function_does_not_trace(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import jax\nfrom jax import P\n"
        "mesh = jax.make_mesh((4,), ('x',), axis_types=(jax.sharding.AxisType.Auto,))\n"
        "specs = {'in_specs': P('x'), 'out_specs': P('x')}\n"
        "fn = jax.shard_map(lambda a: jax.lax.pcast(a, 'x', to='varying'), mesh=mesh, **specs)\n"
        "fn_inputs = (jax.numpy.arange(8.0),)\n"
    )
    request = Request(f"{script}:fn", live=False)
    *_, failed = capture(request)
    app = ShardscopeApp((failed,), analyses(), improve=partial(explained_or_tried, request=request, policy=EVERYTHING))
    async with app.run_test(size=(200, 50)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: isinstance(app.screen, MainScreen) and "why it fails" in driver.text)
        change = "+fn = jax.shard_map(lambda a: a, mesh"
        for words in ("the value is varying already", "script.py:5", "tried: runs", change):
            assert words in driver.text


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="SS28 is right, too, with JAX 0.7")
async def test_a_change_that_was_tried(opened: Opened) -> None:
    path = next(sample.path for sample in samples() if sample.name == "psum_of_invariant")
    request = Request(f"{path}:faulty", live=False)
    *_, last = capture(request)
    ended = threading.Event()

    def captures() -> Iterator[Capture]:
        yield replace(last, progress=Progress("run", 0.0), complete=False)
        ended.wait(60)
        yield last

    improve = partial(explained_or_tried, request=request, policy=EVERYTHING, seconds=600.0)
    app = ShardscopeApp(captures(), analyses(), improve=improve)
    async with app.run_test(size=(200, 50)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: isinstance(app.screen, MainScreen) and driver.screen.linked is not None)
        ended.set()
        await driver.press("2", "down")
        await driver.until(lambda: "14 B → 7 B sent" in driver.text)
        assert "+    penalty = jnp.sum(weights**2)" in driver.text
