"""What is not known yet is not said not to be there: at each arrival of a capture, and of a large one, on every tab."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from shardscope.inspector.capture.file import load
from shardscope.inspector.capture.model import Capture, Failure, Progress, Stage
from shardscope.inspector.diff import passes
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.parsers.source import Source
from shardscope.tui import analyst
from shardscope.tui.arrivals import analysed

from tests.sweeps import sampled

from .conftest import Opened
from .test_looks import KEPT, kept, with_everything
from .test_palette import TWO_FINDINGS

pytestmark = pytest.mark.once

DENIALS = (
    "No collectives",
    "No findings",
    "no findings",
    "No messages",
    "No shard_map",
    "No per-device",
    "Not available",
    "not recorded",
    "was not executed",
    "nothing is communicated",
    "none;",
    "Nothing is selected",
)

MEMORY = re.compile(r"memory (.*?) per device")


def arrivals() -> list[Capture]:
    """The states through which the kept capture went, before its end."""
    whole = replace(load(KEPT), complete=False)
    begun = Capture(progress=Progress("start", 0.0))
    traced = replace(whole, stages=whole.stages[:1], memory=None, progress=Progress("lower", 0.0))
    lowered = replace(whole, stages=whole.stages[:2], memory=None, progress=Progress("compile", 0.0))
    partitioned = replace(whole, stages=whole.stages[:5], memory=None, progress=Progress("compile", 0.0))
    return [begun, traced, lowered, partitioned, replace(whole, progress=Progress("run", 0.0))]


def test_nothing_is_said_of_a_program_that_the_compiler_still_changes() -> None:
    """TPU compilers turn the partitioner's all-reduces into reduce-scatters: before that, nothing is amiss."""
    partitioned = Stage("hlo-spmd", "hlo", Source("m.hlo", TWO_FINDINGS.encode()))
    compiling = Capture(stages=(partitioned,), progress=Progress("compile", 0.0))
    report = inspect(compiling)
    assert not report.findings
    assert not report.communication
    refused = inspect(replace(compiling, progress=None, failure=Failure("function", "refused", "compile")))
    assert {finding.rule for finding in refused.findings} == {"SS01", "SS02"}
    assert refused.communication


@pytest.mark.parametrize("large", sampled([pytest.param(True, id="large"), pytest.param(False, id="small")], 1))
async def test_nothing_is_denied_before_it_is_known(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    if large:
        monkeypatch.setattr(analyst, "LARGE", 0)
        monkeypatch.setattr(analyst, "IDLE_WAIT_S", 0.2)
    states = arrivals()
    gates = [threading.Event() for _ in states]
    shown: list[Capture] = []

    def slowly() -> Iterator[Capture]:
        for state, gate in zip(states, gates, strict=True):
            shown.append(state)
            yield state
            gate.wait(60)
        yield replace(load(KEPT), complete=True)

    async with opened(slowly(), size=(120, 40)) as driver:
        counts, memory = [], set[str]()
        for state, gate in zip(states, gates, strict=True):
            await driver.until(lambda state=state: driver.screen.capture is state)
            for key in "1234567891":
                await driver.press(key)
                memory |= set(MEMORY.findall(driver.text))
                assert not [words for words in DENIALS if words in driver.text], driver.text
            reported = analysed(state)
            await driver.until(
                lambda reported=reported: (
                    driver.screen._reported is not None and analysed(driver.screen._reported) == reported
                )
            )
            memory |= set(MEMORY.findall(driver.text))
            counts.append(len(driver.screen.report.collectives) if driver.screen.report is not None else 0)
            assert not [words for words in DENIALS if words in driver.text], driver.text
            gate.set()
        await driver.until(lambda: not driver.screen.waiting)
        await driver.until(lambda: "requested shardings hold" in driver.text)
        assert memory <= set(MEMORY.findall(driver.text))
    # What was known once is never taken back.
    assert list(map(bool, counts)) == [False, False, True, True, True]


async def test_keys_wait_for_no_table(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that take long are made in the analyst's thread, also those shown before the report."""
    monkeypatch.setattr(analyst, "LARGE", 0)
    compared, on_the_screens = passes.pass_changes, []

    def noted(program: Program) -> tuple[passes.PassChange, ...]:
        on_the_screens.append(threading.current_thread() is threading.main_thread())
        return compared(program)

    monkeypatch.setattr(passes, "pass_changes", noted)
    async with opened(with_everything(kept()), size=(120, 40)) as driver:
        await driver.ready()
        assert on_the_screens
        assert not any(on_the_screens)
