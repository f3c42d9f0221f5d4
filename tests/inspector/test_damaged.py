"""Reports of damaged texts: what is broken is listed, and nothing but that is said to be wrong with them."""

from __future__ import annotations

import io
import re
from itertools import islice
from pathlib import Path

import pytest
from rich.console import Console
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.text import print_report
from shardscope.parsers.source import Source

from tests.conftest import SampleCapture
from tests.parsers.damage import damaged_texts

pytestmark = pytest.mark.once

DAMAGED = 25
"""Texts of each stage of each program."""


def reported(stage: Stage) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_report(inspect(Capture(stages=(stage,), complete=True)), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("name", ["fsdp_tp:grad", "moe:loss", "ring_attention:attend"])
@pytest.mark.parametrize("stage", ["stablehlo", "sdy", "hlo-before", "hlo"])
def test_damaged_texts(sample: SampleCapture, name: str, stage: str) -> None:
    found = sample(name).stage(stage)
    assert found is not None
    for source in islice(damaged_texts([found.source.data], 0), DAMAGED):
        assert reported(Stage(stage, found.dialect, source))


def test_damaged_logs(sample: SampleCapture, tmp_path: Path) -> None:
    texts = {stage.name: stage.source.data for stage in sample("fsdp_tp:grad").stages}
    log = b"\n".join((b"as written", texts["stablehlo"], b"step 1", texts["hlo"], b"step 2", texts["hlo-before"]))
    for source in islice(damaged_texts([log], 0), DAMAGED):
        (tmp_path / "log").write_bytes(source.data)
        found = load(str(tmp_path / "log"))
        assert sum(len(stage.source.data) for stage in found.stages) > 1000
        assert all(reported(stage) for stage in found.stages)


@pytest.mark.parametrize("stage", ["stablehlo", "sdy", "hlo-before", "hlo"])
def test_texts_that_are_cut_off(sample: SampleCapture, stage: str) -> None:
    found = sample("fsdp_tp:grad").stage(stage)
    assert found is not None
    data = found.source.data
    whole = reported(Stage(stage, found.dialect, Source("whole", data)))
    assert "Could not be read" not in whole
    closed = [place.end() for place in re.finditer(rb"^ {0,2}}\n+", data, re.MULTILINE)]
    for end in [*range(len(data) // 40, len(data), len(data) // 40), *closed[:: len(closed) // 40 + 1]]:
        report = reported(Stage(stage, found.dialect, Source("cut", data[:end])))
        assert report
        if data[end:].strip(b"\n}"):
            assert "nothing is communicated" not in report
