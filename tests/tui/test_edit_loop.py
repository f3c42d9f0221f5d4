"""Capturing again, comparing, copying, and trying a fix: over captures that were made before."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture, Failure, Progress
from shardscope.inspector.capture.spawn import Cancellation, CaptureHandle, Request, last_capture
from shardscope.inspector.experiments import edited
from shardscope.inspector.on_screen import analyses
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Finding
from shardscope.tui import suggest_screen
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.arrivals import same_entry
from shardscope.tui.diff_screen import DiffScreen
from shardscope.tui.edit_loop import EditLoop
from shardscope.tui.feed import Feed
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.reading_screen import ChoiceScreen, ReadingScreen
from shardscope.tui.suggest_screen import SuggestScreen
from textual.pilot import Pilot

from ..conftest import SampleCapture
from .conftest import Driver

pytestmark = pytest.mark.once


class Again(EditLoop):
    """Gives a capture that was made before, in two steps, the second one when it may."""

    capture: Capture
    go_on: threading.Event

    def begin(self) -> CaptureHandle:
        self.note()

        def captures() -> Iterator[Capture]:
            yield replace(Capture(), progress=Progress("compile", 0.0))
            self.go_on.wait(60)
            yield self.capture

        return CaptureHandle(self.request, captures(), Cancellation())


def again(capture: Capture, script: Path, *, watch: bool = False) -> Again:
    script.write_text("")
    loop = Again(Request(f"{script}:fn"), watch)
    loop.capture, loop.go_on = capture, threading.Event()
    return loop


async def over(pilot: Pilot[None], app: ShardscopeApp) -> Driver:
    driver = Driver(app, pilot)
    await driver.until(lambda: isinstance(app.screen, MainScreen) and not driver.screen.waiting)
    return driver


async def test_what_is_shown_stays_until_another_run_has_ended(sample: SampleCapture, tmp_path: Path) -> None:
    faulty, repaired = (sample(f"missing_reduce_scatter:{name}") for name in ("faulty", "repaired"))
    loop = again(repaired, tmp_path / "script.py")
    ending = replace(faulty, progress=Progress("run", 0.0), complete=False)
    app = ShardscopeApp((ending, faulty), analyses(), loops=(loop,))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        driver = await over(pilot, app)
        await driver.press("3")
        await driver.press("r")
        await driver.until(lambda: "rerun: compiling" in driver.text)
        assert "all-reduce" in driver.text
        assert "1 note" in driver.text
        loop.go_on.set()
        await driver.until(lambda: driver.screen.capture is repaired and not driver.screen.waiting)
        await driver.until(lambda: "since the run before" in driver.text)
        assert "1 note" not in driver.text.splitlines()[0]
        assert driver.screen.query_one("TablesPane").chosen == "collectives"
        await driver.press("d")
        await driver.until(lambda: isinstance(app.screen, DiffScreen) and "reduce-scatter" in driver.text)
        await driver.press("escape")
        assert isinstance(app.screen, MainScreen)


async def test_another_target_from_the_palette(sample: SampleCapture, tmp_path: Path) -> None:
    """What one types there is compiled for; what is no target is not offered."""
    faulty, repaired = (sample(f"missing_reduce_scatter:{name}") for name in ("faulty", "repaired"))
    loop = again(repaired, tmp_path / "script.py")
    app = ShardscopeApp((faulty,), analyses(), loops=(loop,))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        driver = await over(pilot, app)
        await driver.press("colon", *"tpu:v5p:2x2x9x9")
        await pilot.pause(0.5)
        assert "compile for tpu:v5p:2x2x9x9" not in driver.text
        await driver.press(*["backspace"] * 4)
        await driver.until(lambda: "compile for tpu:v5p:2x2x" in driver.text)
        await driver.press("2")
        await driver.until(lambda: "compile for tpu:v5p:2x2x2 " in driver.text)
        await driver.press("enter")
        await driver.until(lambda: "rerun: compiling" in driver.text)
        assert loop.request.target == "tpu:v5p:2x2x2"
        loop.go_on.set()
        await driver.until(lambda: driver.screen.capture is repaired)


async def test_a_file_that_was_saved_is_captured_again(
    sample: SampleCapture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardscope.tui.edit_screen.PERIOD_S", 0.1)
    first = sample("missing_reduce_scatter:faulty")
    script = tmp_path / "script.py"
    assert first.subject is not None
    first = replace(first, subject=replace(first.subject, script=str(script)))
    loop = again(first, script)
    app = ShardscopeApp((first,), analyses(), loops=(loop,))
    async with app.run_test(size=(120, 40)) as pilot:
        driver = await over(pilot, app)
        assert "r reruns" not in driver.text
        os.utime(script, (loop.began + 10, loop.began + 10))
        await driver.until(lambda: "script.py changed" in driver.text)
        loop.watch = True
        await driver.until(lambda: "rerun: compiling" in driver.text)
        loop.go_on.set()
        await driver.until(lambda: not driver.screen.waiting)
        assert "script.py changed" not in driver.text


def test_of_requests_that_wait_the_last_is_carried_out(sample: SampleCapture, tmp_path: Path) -> None:
    capture = sample("missing_reduce_scatter:repaired")
    has_ended = threading.Event()
    loop = again(capture, tmp_path / "script.py")
    loop.go_on.set()
    begun: list[int] = []

    def slow() -> Iterator[Capture]:
        yield capture
        has_ended.wait(60)

    def begin(number: int) -> CaptureHandle:
        begun.append(number)
        return loop.begin()

    feed = Feed(slow(), lambda: None)
    feed.start(lambda message: None)
    for number in range(3):
        feed.rerun(partial(begin, number))
    has_ended.set()
    feed.stop()
    assert begun == [2]
    assert feed.runs == 2


async def test_a_run_that_did_not_end_is_nothing_to_compare_with(sample: SampleCapture, tmp_path: Path) -> None:
    loop = again(sample("missing_reduce_scatter:repaired"), tmp_path / "script.py")
    app = ShardscopeApp((replace(Capture(), progress=Progress("arguments", 0.0)),), analyses(), loops=(loop,))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: isinstance(app.screen, MainScreen) and driver.screen.report is not None)
        loop.go_on.set()
        await driver.press("r")
        await driver.until(lambda: driver.screen.report is not None and not driver.screen.waiting)
        await driver.press("d")
        await driver.until(lambda: "no other run to compare with" in driver.text)


async def test_a_finding_is_read_copied_and_tried(
    sample: SampleCapture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty, repaired = (sample(f"missing_reduce_scatter:{name}") for name in ("faulty", "repaired"))
    monkeypatch.setattr(edited, "captured_with", lambda program, request, edits: repaired)
    app = ShardscopeApp((faulty,), analyses(), loops=(again(faulty, tmp_path / "script.py"),))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        driver = await over(pilot, app)
        await driver.press("2", "home")
        await driver.until(lambda: isinstance(driver.screen.selected, Finding))
        await driver.press("enter")
        await driver.until(lambda: isinstance(app.screen, ReadingScreen) and "compiled to" in driver.text)
        await driver.press("y")
        assert "+    product = lax.psum_scatter(a @ b, 'x'" in app.clipboard
        await driver.press("A")
        await driver.until(lambda: isinstance(app.screen, DiffScreen) and "reduce-scatter" in driver.text)
        await driver.press("escape", "3", "y")
        await driver.until(lambda: isinstance(app.screen, ChoiceScreen))
        assert "the replica groups" in driver.text
        await driver.press("j", "j", "enter")
        assert app.clipboard == "{{0,1,2,3,4,5,6,7}}"


async def test_a_file_has_nothing_to_run_again(sample: SampleCapture) -> None:
    app = ShardscopeApp((sample("missing_reduce_scatter:faulty"),), analyses())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        driver = await over(pilot, app)
        for key in ("r", "d", "A"):
            await driver.press(key)
        await driver.until(lambda: "can be captured again" in driver.text)


def test_a_failure_that_is_gone_is_not_selected(sample: SampleCapture) -> None:
    capture = sample("psum:psum")
    one, other = (Failure("function", message, "trace") for message in ("one", "other"))
    assert same_entry(one, inspect(capture)) is None
    assert same_entry(one, inspect(replace(capture, failure=other))) == other


PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from layers import dense
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
def fn(w, x):
    return {body}
if __name__ == "__main__":
    w = jax.device_put(jnp.ones((32, 16)), NamedSharding(mesh, P("x")))
    jax.jit(fn)(w, jnp.ones((16, 32)))
"""


async def test_watching_lives_through_broken_edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last good report stays, marked stale, until an edit of any of the files mends the program."""
    monkeypatch.setattr("shardscope.tui.edit_screen.PERIOD_S", 0.1)
    script, module = tmp_path / "script.py", tmp_path / "layers.py"
    whole, broken = "def dense(w, x):\n    return x @ w\n", "def dense(w, x):\n    return x @ x\n"
    script.write_text(PROGRAM.format(body="dense(w, x)"))
    module.write_text(whole)
    loop = EditLoop(Request(f"{script}:fn", live=False, directory=str(tmp_path)), watch=True)
    handle = loop.begin()
    app = ShardscopeApp(handle.captures, analyses(), handle.cancellation.cancel, loops=(loop,))

    def save(path: Path, text: str, *, by_rename: bool = False) -> None:
        if by_rename:
            other = path.with_suffix(".new")
            other.write_text(text)
            os.utime(other, (1e9, 1e9))
            other.replace(path)
        else:
            path.write_text(text)

    async with app.run_test(size=(140, 40), notifications=True) as pilot:
        driver = await over(pilot, app)
        await driver.until(lambda: "all-reduce" in driver.text)
        edits = (
            (script, "dense(w, x", "SyntaxError", False),
            (script, "dense(w, y)", "NameError", True),
            (script, "dense(w, x) * 2", "", False),
            (module, broken, "TypeError", False),
            (module, "import missing_module\n", "ModuleNotFoundError", True),
            (module, "def dense(w, x)\n", "SyntaxError", False),
            (module, whole, "", True),
            (module, "from products.dense import dense\n", "ModuleNotFoundError", False),
            (tmp_path / "products" / "dense.py", whole, "", False),
            (tmp_path / "products" / "dense.py", None, "ModuleNotFoundError", False),
            (module, whole, "", False),
        )
        for path, text, error, by_rename in edits:
            path.parent.mkdir(exist_ok=True)
            if text is None:
                path.unlink()
            else:
                save(path, PROGRAM.format(body=text) if path == script else text, by_rename=by_rename)
            shown = f"✗ {error} stale:" if error else "since the run before"
            await driver.until(lambda shown=shown: shown in driver.text)  # a run that fails at once is over at once
            await driver.until(lambda: not driver.screen.waiting)
            assert ("stale:" in driver.text) == bool(error), driver.text
            assert "all-reduce" in driver.text
            assert ("since the run before" in driver.text) == (not error)


SEARCHED = """\
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
w = jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(mesh, P("x")))
batch = jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(mesh, P(None)))
step = jax.jit(lambda w, batch: jnp.tanh(batch @ w).sum())
step_inputs = w, batch
"""


async def test_other_shardings_are_searched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patch of the first row is copied: with it the program sends nothing but one sum of a number."""
    monkeypatch.setattr(suggest_screen, "SECONDS", 15)
    script = tmp_path / "script.py"
    script.write_text(SEARCHED)
    request = Request(f"{script}:step")
    app = ShardscopeApp((last_capture(request),), analyses(), loops=(EditLoop(request),))
    async with app.run_test(size=(120, 40)) as pilot:
        driver = await over(pilot, app)
        await driver.press("S")
        await driver.until(lambda: isinstance(app.screen, SuggestScreen) and "better by price" in driver.text)
        assert " today " in driver.text
        await driver.press("y")
        await driver.until(lambda: app.clipboard)
        await driver.press("escape")
        assert driver.screen.report is not None
    (tmp_path / "patch").write_text(app.clipboard)
    subprocess.run(["patch", "-p1", "-i", "patch"], cwd=tmp_path, check=True, capture_output=True)
    hlo = last_capture(request).stage("hlo")
    assert hlo is not None
    sent = re.findall(r"(\S+) (all-\w+|collective-permute|reduce-scatter)\(", hlo.source.text())
    assert sent == [("f32[]", "all-reduce")]
