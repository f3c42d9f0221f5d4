"""Which passes of XLA's change communication: compared with the texts that XLA wrote, and with its stages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from shardscope.inspector.capture import passes
from shardscope.inspector.capture.file import load, save
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import capture
from shardscope.inspector.diff.passes import pass_changes
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json import to_json
from shardscope.tui.diff_screen import DiffScreen
from shardscope.tui.row_table import RowTable

from shardscope.cli import main

from .conftest import Opened

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P, NamedSharding, Mesh
import numpy as np
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("fsdp", "tp"))
def shape(dims, *spec):
    return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))
def loss(w, x):
    return (jnp.tanh(x @ w) ** 2).mean()
step = jax.grad(loss)
inputs = shape((64, 128), "fsdp", "tp"), shape((32, 64), "fsdp")
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("passes")
    (folder / "script.py").write_text(SCRIPT)
    request = Request(f"{folder}/script.py:step", devices=8, live=False, passes="communication")
    *_, last = capture(request)
    assert last.complete
    save(last, folder / "kept.shardscope")
    return folder / "kept.shardscope"


def kinds(text: str) -> Counter[str]:
    return Counter(re.findall(r" (all-gather|all-reduce|all-to-all|reduce-scatter|collective-permute)\(", text))


def texts(captured: Capture, stage: str) -> str:
    found = captured.stage(stage)
    assert found is not None
    return found.source.text()


def test_the_counts_are_those_of_the_texts(kept: Path) -> None:
    captured = load(kept)
    changes = pass_changes(Program(captured))
    first = changes[0]
    assert first.name == "spmd-partitioning"
    assert first.diff.before.count == 0 == kinds(texts(captured, "hlo-before")).total()
    for change in changes:
        for side in (change.diff.before, change.diff.after):
            assert side.text is not None
            listed = Counter[str]()
            for transfer, count in side.transfers:
                listed[transfer.work.kind] += count
            assert listed == kinds(side.text.source.text())
        one, other = (
            side.text.source.text() for side in (change.diff.before, change.diff.after) if side.text is not None
        )
        assert change.diff.opcodes
        for amount in change.diff.opcodes:
            counts = [len(re.findall(rf"^ .* = .*? {amount.name}\(", text, re.M)) for text in (one, other)]
            assert counts == [amount.before, amount.after], amount.name
    last = changes[-1].diff.after.text
    assert last is not None
    assert kinds(last.source.text()) == kinds(texts(captured, "hlo")) != Counter()


def test_in_a_document_and_as_a_diff(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads(to_json(inspect(load(kept))))
    names = [each["name"] for each in report["passes"]]
    assert names[0] == "spmd-partitioning"
    assert {change["change"] for change in report["passes"][0]["changes"]} == {"added"}
    assert main(["open", str(kept), "--format", "text", "--details", "passes"]) == 0
    assert "spmd-partitioning" in capsys.readouterr().out
    assert main(["diff", str(kept), "--pass", "1", "--format", "text"]) == 0
    assert "before: before spmd-partitioning" in capsys.readouterr().out
    assert main(["diff", str(kept), "--pass", "no-such-pass", "--format", "text"]) == 2
    assert "1 spmd-partitioning (spmd-partitioner)" in capsys.readouterr().err


async def test_on_the_screen(kept: Path, opened: Opened) -> None:
    async with opened(load(kept), size=(120, 40)) as driver:
        await driver.ready()
        await driver.press("P")
        await driver.until(lambda: "spmd-partitioning" in driver.text)
        await driver.until(lambda: "what it changes" in driver.text)
        assert driver.screen.query_one("#passes-table", RowTable).has_focus
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, DiffScreen))
        await driver.until(lambda: "after spmd-partitioning" in driver.text)


def module(*operations: str) -> bytes:
    lines = (f"  %x.{number} = f32[8]{{0}} {each}" for number, each in enumerate(operations))
    return "\n".join(("HloModule m", "", "ENTRY %main () -> f32[8] {", *lines, "}", "")).encode()


WRITTEN = [
    ("module_0001.m.0001.p.before_a.txt", module("parameter(0)")),
    ("module_0001.m.0002.p.after_a.before_b.txt", module("parameter(0)")),
    ("module_0001.m.0003.p.after_b.before_c.txt", module("parameter(0)", "negate(%x.0)")),
    ("module_0001.m.0004.p.after_c.before_d.txt", module("parameter(0)", "all-reduce(%x.0), replica_groups={}")),
    ("module_0001.m.0005.p.after_d.txt", module("parameter(0)", "all-reduce(%x.0), replica_groups={}")),
]


def read(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def test_passes_that_change_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose text differs from the text before; and what there is no room for is said."""
    files = [(name, read(data)) for name, data in WRITTEN]
    assert [each.name for each in passes.snapshots(files).kept if each.changes] == ["c"]
    every = passes.snapshots(files, every=True)
    assert [each.name for each in every.kept if each.changes] == ["b", "c"]
    assert every.messages == ()
    monkeypatch.setattr(passes, "MAX_BYTES", len(WRITTEN[1][1]) + len(WRITTEN[2][1]))
    (message,) = passes.snapshots(files, every=True).messages
    assert message.text.startswith("1 pass not shown")
