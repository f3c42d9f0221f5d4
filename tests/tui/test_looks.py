"""How the screens look, over a capture that was kept: it is also the oldest file that has to stay readable.

What is compared is the text; `pytest tests/tui/test_looks.py --snapshot-update` rewrites it, to be looked at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import load
from shardscope.inspector.capture.model import Capture, Device, Failure, PassSnapshot, Stage
from shardscope.inspector.capture.protocol.trace import CompiledProgram, Place, ProcessStarted
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.on_screen import analyses
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report.traces import Divergence, Process, RankComparison, Side, Trace
from shardscope.inspector.report.traces import Program as TracedProgram
from shardscope.parsers.source import Source
from shardscope.tui.app import ScreenApp, ShardscopeApp, ThemedApp
from shardscope.tui.diff_screen import DiffScreen
from shardscope.tui.feed import Feed
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.ranks_screen import RanksScreen
from shardscope.tui.trace_screen import TraceScreen

from .conftest import Driver

pytestmark = pytest.mark.once

LOOKS = Path(__file__).parent / "looks"
KEPT = LOOKS / "fsdp_tp.capture"

SIZES = [(80, 24), (120, 40)]

SCREENS = {
    "overview": ("1",),
    "findings": ("2",),
    "collectives": ("3",),
    "copying": ("3", "y"),
    "shardings": ("escape", "4"),
    "inputs": ("5", "end"),
    "variance": ("6",),
    "values": ("7",),
    "messages": ("9",),
    "code": ("3", "enter"),
    "source": ("shift+tab",),
    "help": ("question_mark",),
}
"""The keys that lead from each screen to the next."""

FAILED = Failure(
    "function",
    "ValueError: operand has shape (8, 3)",
    "trace",
    details='Traceback:\n  File "script.py", line 3, in fn\nValueError: operand has shape (8, 3)',
    hint="give --arg a shape that fits",
)

GROUPS = ",".join("{" + ",".join(str(16 * row + column) for column in range(16)) + "}" for row in range(16))
LARGE_MESH = f"""HloModule m, num_partitions=256

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

ENTRY %main (x: f32[64]) -> f32[64] {{
  %x = f32[64]{{0}} parameter(0)
  ROOT %r = f32[64]{{0}} all-reduce(%x), replica_groups={{{GROUPS}}}, use_global_device_ids=true, \
channel_id=1, to_apply=%add
}}
"""


def kept() -> Capture:
    return load(KEPT)


def on_tpus(capture: Capture) -> Capture:
    """The same program as if it ran on eight TPUs: the model needs no more than to know where they are."""
    subject = capture.subject
    assert subject is not None
    devices = tuple(Device(number, (number % 2, number // 2 % 2, number // 4)) for number in range(8))
    return replace(capture, subject=replace(subject, target="tpu:v5p:2x2x2", device_kind="TPU v5", devices=devices))


def with_everything(capture: Capture) -> Capture:
    """A program that has every tab: on a target, with a pass."""
    texts = {each.name: each for each in capture.stages}
    passes = tuple(
        PassSnapshot("p", name, Stage("hlo", "hlo", texts[stage].source), changes)
        for name, stage, changes in (("before", "hlo-before", False), ("spmd-partitioning", "hlo-spmd", True))
    )
    return replace(on_tpus(capture), passes=passes)


def of_text(text: str) -> Capture:
    return Capture(stages=(Stage("hlo", "hlo", Source("m.hlo", text.encode())),), complete=True)


@asynccontextmanager
async def opened(app: ThemedApp, size: tuple[int, int]) -> AsyncIterator[Driver]:
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot)
        if isinstance(app, ShardscopeApp):
            await driver.until(lambda: isinstance(app.screen, MainScreen) and not driver.screen.waiting)
        yield driver


async def settled(driver: Driver) -> str:
    """What is on the screen when it changes no more."""
    seen = ""
    while seen != (seen := driver.text):
        await driver.pilot.pause(0.5)
    return "\n".join(line.rstrip() for line in seen.splitlines()) + "\n"


def compare(name: str, size: tuple[int, int], text: str, *, update: bool) -> None:
    path = LOOKS / f"{name}-{size[0]}x{size[1]}.txt"
    if update:
        path.write_text(text)
    assert text == path.read_text()


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("update_snapshots", default=False))


@pytest.mark.parametrize("size", SIZES)
async def test_screens_of_a_program(size: tuple[int, int], update: bool) -> None:
    async with opened(ShardscopeApp((kept(),), analyses()), size) as driver:
        for name, keys in SCREENS.items():
            for key in keys:
                await driver.press(key)
            compare(name, size, await settled(driver), update=update)


@pytest.mark.parametrize("size", SIZES)
async def test_a_failure(size: tuple[int, int], update: bool) -> None:
    failed = replace(kept(), stages=(), execution=None, probes=(), failure=FAILED, complete=False)
    async with opened(ShardscopeApp((failed,), analyses()), size) as driver:
        compare("failure", size, await settled(driver), update=update)


@pytest.mark.parametrize("size", SIZES)
async def test_a_large_mesh(size: tuple[int, int], update: bool) -> None:
    async with opened(ShardscopeApp((of_text(LARGE_MESH),), analyses()), size) as driver:
        await driver.ready()
        compare("large-mesh", size, await settled(driver), update=update)


@pytest.mark.parametrize("size", SIZES)
async def test_a_diff(size: tuple[int, int], update: bool) -> None:
    text = LARGE_MESH.replace("channel_id=1", "channel_id=2").replace("f32[64]", "bf16[64]")
    async with opened(
        ScreenApp(DiffScreen, diff(*(inspect(of_text(each)) for each in (LARGE_MESH, text)))), size
    ) as driver:
        await driver.until(lambda: "bf16" in driver.text and "search" in driver.text)
        compare("diff", size, await settled(driver), update=update)


@pytest.mark.parametrize("size", SIZES)
async def test_a_target(size: tuple[int, int], update: bool) -> None:
    async with opened(ShardscopeApp((with_everything(kept()),), analyses()), size) as driver:
        await driver.ready()
        for name, keys in (("timeline", ("i",)), ("passes", ("P",)), ("target", ("3",))):
            await driver.press(*keys)
            compare(name, size, await settled(driver), update=update)


@pytest.mark.parametrize("size", SIZES)
async def test_targets_side_by_side(size: tuple[int, int], update: bool) -> None:
    app = ShardscopeApp((kept(),), analyses(), others=[Feed((on_tpus(kept()),), lambda: None)])
    async with opened(app, size) as driver:
        await driver.ready()
        await driver.press("T")
        await driver.until(lambda: "bound by" in driver.text)
        compare("side-by-side", size, await settled(driver), update=update)


@pytest.mark.parametrize("size", SIZES)
async def test_the_list_of_a_trace(size: tuple[int, int], update: bool) -> None:
    where = Place("/nowhere/train.py", 12)
    step = CompiledProgram(1, "step", "step", source=where, devices=8, lower_seconds=0.25, compile_seconds=1.25)
    init = CompiledProgram(2, "init", "init", source=where, compile_seconds=0.125)
    programs = (
        TracedProgram(0, step, 3, {"all-reduce": 2, "all-gather": 4}, 4096, None),
        TracedProgram(0, init, 1, {}, 0, None),
    )
    process = Process(ProcessStarted(7, ("train.py",), "3.11.7", 0.0), seconds=2.5)
    found = Trace(("python", "train.py"), (process,), programs, status=0, seconds=2.5)
    async with opened(ScreenApp(TraceScreen, found, lambda program: None, analyses()), size) as driver:  # type: ignore[arg-type]
        await driver.until(lambda: "train.py" in driver.text and "init" in driver.text)
        compare("trace", size, await settled(driver), update=update)


@pytest.mark.parametrize("size", SIZES)
async def test_differences_between_ranks(size: tuple[int, int], update: bool) -> None:
    where = Place("/nowhere/train.py", 20)
    operations = [f"%cst_2 = stablehlo.constant dense<{value}.0> : tensor<f32>" for value in (2, 4)]
    divergences = (
        Divergence(
            "program",
            "step",
            "step is lowered to 2 different programs: the first differing operation",
            (Side((0, 1, 2), operations[0], where), Side((3,), operations[1], where)),
        ),
        Divergence(
            "missing",
            "save",
            "only rank 0 compiles save",
            (Side((0,), "compiles save", where), Side((1, 2, 3), "do not")),
        ),
    )
    processes = tuple(Process(ProcessStarted(n, ("train.py",), "3.11.7", 0.0, n), seconds=2.5) for n in range(4))
    ranks = RankComparison((0, 1, 2, 3), 1, divergences, ())
    trace = Trace(("python", "train.py"), processes, (), status=0, seconds=12.5, ranks=ranks)
    async with opened(ScreenApp(RanksScreen, trace, analyses()), size) as driver:
        await driver.until(lambda: "dense<4.0>" in driver.text and "search" in driver.text)
        compare("ranks", size, await settled(driver), update=update)
