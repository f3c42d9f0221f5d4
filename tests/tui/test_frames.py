"""Frames of the call stack, the collectives of one line, and columns that a search scrolled to."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.load import load
from shardscope.inspector.report import Collective
from shardscope.tui.stage_pane import SourcePane, StagePane

from .conftest import Driver, Opened

pytestmark = pytest.mark.once

REDUCED = """
  %sum.{number} = f32[64]{{0}} all-reduce(%x), channel_id={number}, replica_groups={{{{0,1}}}}, \
use_global_device_ids=true, to_apply=%add, metadata={{op_name="jit(f)/dot_general" stack_frame_id={frame}}}"""

TEXT = """HloModule m, num_partitions=2

FileNames
1 "{folder}/site-packages/flax/linear.py"
2 "{folder}/step.py"

FunctionNames
1 "Linear.__call__"
2 "block"
3 "step"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=9}}
2 {{file_name_id=2 function_name_id=2 line=2 end_line=2 column=4 end_column=9}}
3 {{file_name_id=2 function_name_id=3 line=5 end_line=5 column=4 end_column=9}}

StackFrames
1 {{file_location_id=3 parent_frame_id=1}}
2 {{file_location_id=2 parent_frame_id=2}}
3 {{file_location_id=1 parent_frame_id=3}}

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}}

ENTRY %main (x: f32[64]) -> f32[64] {{
  %x = f32[64]{{0}} parameter(0){reduced}
  ROOT %r = f32[64]{{0}} add(%sum.1, %sum.2)
}}
"""


def shown(driver: Driver) -> str:
    """The file and the line that the source pane shows."""
    view = driver.screen.query_one(SourcePane).view
    return f"{Path(view.source.name).name}:{view.cursor + 1}"


async def test_frames_and_collectives_of_a_line(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site-packages/flax").mkdir(parents=True)
    (tmp_path / "site-packages/flax/linear.py").write_text("one\ntwo\nthree\n")
    (tmp_path / "step.py").write_text("def block(x):\n    return linear(x)\n\ndef step(x):\n    return block(x)\n")
    monkeypatch.chdir(tmp_path)
    reduced = "".join(REDUCED.format(number=number, frame=3) for number in (1, 2))
    (tmp_path / "m.hlo").write_text(TEXT.format(folder=tmp_path, reduced=reduced))
    async with opened(load("m.hlo"), size=(120, 40)) as driver:
        await driver.until(lambda: not driver.screen.waiting)
        await driver.press("3")

        # The line of one's own is shown first, not that of the library which it calls.
        await driver.until(lambda: shown(driver) == "step.py:2")
        assert "▸ step.py:2" in driver.text
        await driver.press("left_square_bracket")
        await driver.until(lambda: shown(driver) == "linear.py:3")
        assert "▸ linear.py:3" in driver.text
        await driver.press("right_square_bracket", "right_square_bracket")
        await driver.until(lambda: shown(driver) == "step.py:5")

        # One goes around the collectives of that line.
        seen = []
        for _ in range(3):
            await driver.press("c")
            await driver.until(lambda: driver.screen.linked.place == driver.screen.selected)  # type: ignore[union-attr]
            assert isinstance(driver.screen.selected, Collective)
            seen.append(driver.screen.selected.name)
        assert seen in (["sum.2", "sum.1", "sum.2"], ["sum.1", "sum.2", "sum.1"])

        # What a search scrolled to the side does not stay there.
        await driver.stage(driver.screen.capture.stages[-1].name)
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: view.index.count)
        await driver.press("slash", *"stack_frame_id", "enter")
        await driver.until(lambda: view.scroll_offset.x > 0)
        await driver.press("escape", "G")
        assert view.scroll_offset.x == 0
