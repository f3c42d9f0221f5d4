"""The screen while a capture grows, and when it does not end well."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Cancellation, Request, capture
from shardscope.inspector.on_screen import analyses
from shardscope.parsers.source import Source
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.stage_pane import SourcePane, StagePane

from ..conftest import SampleCapture
from .conftest import Driver, Opened

pytestmark = pytest.mark.once


def words_that_stand_out(driver: Driver) -> set[str]:
    """The words of the stage's text that are drawn by themselves: all of a line is one segment where nothing does."""
    view = driver.screen.query_one(StagePane).view
    lines = (view.render_line(y) for y in range(view.size.height))
    return {segment.text.strip() for line in lines for segment in line}


async def test_stages_show_as_they_arrive(opened: Opened, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import jax, jax.numpy as jnp\n"
        "mesh = jax.make_mesh((2,), ('x',), axis_types=(jax.sharding.AxisType.Auto,))\n"
        "@jax.jit\n@jax.shard_map(mesh=mesh, in_specs=jax.P('x'), out_specs=jax.P())\n"
        "def fn(a):\n    return jax.lax.psum(a, 'x')\n"
        "inputs = (jnp.arange(4.),)\n"
    )
    go_on = threading.Event()
    seen: list[Capture] = []

    def slowly() -> Iterator[Capture]:
        for each in capture(Request(f"{script}:fn")):
            seen.append(each)
            yield each
            if each.stages and not go_on.is_set():
                go_on.wait(60)

    async with opened(slowly()) as driver:
        await driver.until(lambda: driver.screen.query_one(StagePane).view.text_of(0).startswith(("{ lambda", "let")))
        assert driver.screen.stage == "jaxpr"
        assert "jax.lax.psum" in driver.text
        assert "✓" not in driver.text.splitlines()[0]
        driver.screen.action_stage("hlo")
        await driver.until(lambda: "▸" in driver.text)
        go_on.set()
        await driver.until(lambda: "✓" in driver.text.splitlines()[0])
        await driver.press("3")
        await driver.until(lambda: "in the compiled program: 1," in driver.text)
        assert seen[-1].complete
        for stage, word in (("hlo", "HloModule"), ("stablehlo", "module"), ("jaxpr", "psum_invariant")):
            await driver.stage(stage)
            await driver.press("home")
            await driver.until(lambda word=word: word in words_that_stand_out(driver))


async def test_leaving_ends_the_capture(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time\nprint('here')\ntime.sleep(600)\n")
    cancellation = Cancellation()
    app = ShardscopeApp(capture(Request(f"{script}:fn"), cancellation), analyses(), cancellation.cancel)
    async with app.run_test() as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: "importing the script" in driver.text)
        await pilot.press("q")
    assert not app.feed.stop().complete
    assert not any(thread.name == "shardscope-feed" for thread in threading.enumerate())


async def test_a_failure_is_told_and_earlier_stages_stay(opened: Opened, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import jax, jax.numpy as jnp, numpy as np\n"
        "def boom(x):\n    raise ValueError('[bold]what went wrong')\n"
        "def fn(a):\n    return jax.pure_callback(boom, a, a)\n"
        "inputs = (jnp.arange(4.),)\n"
    )
    async with opened(capture(Request(f"{script}:fn"))) as driver:
        await driver.until(lambda: "stopped while running" in driver.text)
        await driver.press("9")
        await driver.until(lambda: "[bold]what went wrong" in driver.text)
        await driver.stage("stablehlo")
        await driver.until(lambda: "module @jit_fn" in driver.text)


async def test_a_failure_before_the_first_stage(opened: Opened, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise RuntimeError('no \\x1b[31mcolour')\ndef fn(): pass\nfn_inputs = ()\n")
    async with opened(capture(Request(f"{script}:fn"))) as driver:
        await driver.until(lambda: "Stopped while importing the script" in driver.text)
        await driver.until(lambda: "no �[31mcolour" in driver.text)
        await driver.press("enter")  # to the line that raised it
        await driver.until(lambda: driver.screen.query_one(SourcePane).view.has_focus)
        for key in "1234567890":
            await driver.press(key)


async def test_what_a_dump_says_stays_text(sample: SampleCapture, opened: Opened) -> None:
    """Escapes and markup in names and texts neither colour nor crash the screen."""
    whole = sample("fsdp_tp:loss")
    evil = "\x1b]0;owned\x07[red]x[/red]\u202e"
    texts = [stage.source.data.replace(b"HloModule", f"HloModule {evil}".encode()) for stage in whole.stages]
    stages = tuple(replace(stage, source=Source(evil, text)) for stage, text in zip(whole.stages, texts, strict=True))
    arguments = tuple(replace(value, path=evil, spec=evil) for value in whole.arguments)
    subject = replace(whole.subject, function=evil, script=None) if whole.subject is not None else None
    capture = replace(whole, stages=stages, arguments=arguments, subject=subject, stdout=evil)
    async with opened(capture) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        for key in ("5", "down", "9", "0", "tab", "tab", "tab", "home", "less_than_sign", "1", "3"):
            await driver.press(key)
            assert "\x1b" not in driver.text
            assert "\u202e" not in driver.text
        await driver.press("5")
        assert "[red]x[/red]" in driver.text
