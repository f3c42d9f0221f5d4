"""Budgets and goldens, of captures."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture, CaptureError, Stage
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.check import golden
from shardscope.inspector.check.budget import broken, parse_budget
from shardscope.inspector.check.golden import golden_of, read_golden
from shardscope.inspector.check.verdict import judge
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.tables.comparison import summary
from shardscope.inspector.report import PeakMemory
from shardscope.inspector.report.changes import CollectiveSignature, Fingerprint, Place, Transfer
from shardscope.parsers.source import Source

from tests.conftest import SampleCapture


@pytest.mark.parametrize(
    ("budget", "holds"),
    [
        ("all-gather over feats: none", True),
        ("all-gather over batch: none", False),
        ("all-gathers over batch: 6", True),
        ("all-gathers over batch, feats: 5", False),
        ("all-to-all: none", True),
        ("collectives <= 10", False),
        ("collectives <= 11", True),
        ("wire bytes <= 3986 B", True),
        ("wire bytes <= 3985", False),
        ("wire bytes <= 3.985 kB", False),
        ("wire bytes <= 3.9 KiB", True),
        ("no implicit communication", True),
        ("peak memory <= 1 MB", True),
        ("peak memory <= 1 B", False),
        ("peak memory <= 90 %", False),  # of a fake device's memory nothing is known
        ("time <= 1 s", False),
    ],
)
def test_budgets(sample: SampleCapture, budget: str, holds: bool) -> None:
    """The sample sends 3986 bytes: six gathers over batch, three reduce-scatters and a psum over feats, a psum."""
    verdict = judge("loss", inspect(sample("fsdp_tp:loss")), None, [parse_budget(budget)])
    assert verdict.passed == holds, verdict.broken


@pytest.mark.parametrize(("share", "holds"), [("24 %", False), ("25 %", True), ("100 %", True)])
def test_a_share_of_the_memory(sample: SampleCapture, share: str, holds: bool) -> None:
    report = replace(inspect(sample("fsdp_tp:loss")), peak=PeakMemory(1000, 4000))
    assert judge("loss", report, None, [parse_budget(f"peak memory <= {share}")]).passed == holds


@pytest.mark.parametrize(("axis", "holds"), [("i", False), ("j", False), ("k", True)])
def test_a_collective_over_several_axes(sample: SampleCapture, axis: str, holds: bool) -> None:
    report = inspect(sample("psum_2d:over_both"))
    assert judge("f", report, None, [parse_budget(f"all-reduce over {axis}: none")]).passed == holds


def test_groups_that_no_axes_form() -> None:
    """They may go over any axis."""
    text = """HloModule m, is_scheduled=true, num_partitions=4

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  ROOT %r = f32[8] all-reduce(%p), channel_id=1, replica_groups={{0,3},{1,2}}, use_global_device_ids=true, \
to_apply=%sum
}
"""
    report = inspect(Capture(stages=(Stage("hlo", "hlo", Source("f", text.encode())),), complete=True))
    (found,) = report.collectives
    assert found.axes is None
    assert not judge("f", report, None, [parse_budget("all-reduce over k: none")]).passed
    assert judge("f", report, None, [parse_budget("all-gather over k: none")]).passed


def test_what_sends_most_is_listed_first_after_what_is_unknown() -> None:
    """Bytes of an execution, executions, and how many such collectives there are."""
    sends = [(8, 1, 1), (None, 1, 1), (3, 1, 5), (0, 7, 1), (2, 9, 1), (100, None, 2)]
    listed = tuple((_sending(wire, executions), count) for wire, executions, count in sends)
    (over,) = broken([parse_budget("wire bytes <= 1")], Fingerprint("", "hlo", listed, ()))
    assert [one.work.wire_bytes for one, _ in over.transfers] == [None, 100, 2, 3, 8, 0]


def _sending(wire: int | None, executions: int | None) -> Transfer:
    work = CollectiveSignature("all-reduce", "sum", None, ("f32",), 8, 8, wire, executions, is_async=False)
    return Transfer(work, Place((("", ""),), "", "unknown"), "unknown", "", "")


def test_what_is_counted_is_said() -> None:
    listed = tuple((_sending(wire, 1), count) for wire, count in ((8, 2), (4, 1)))
    (over,) = broken(
        [parse_budget("all-reduces <= 2"), parse_budget("collectives <= 3")], Fingerprint("", "hlo", listed, ())
    )
    assert over.found == "3 collectives"


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("wire bytes <= 2 GB", 2e9),
        ("wire bytes <= 1.5 kib", 1536),
        ("peak memory <= 20", 20),
        ("peak memory <= 12.5 %", 12.5),
        ("time <= 1.5 s", 1.5),
        ("time <= 20 ms", 0.02),
        ("time <= 20.5 us", 2.05e-5),
        ("time <= 7 µs", 7e-6),
        ("all-gather: none", 0),
        ("collectives <= 12", 12),
    ],
)
def test_what_a_budget_allows(text: str, most: float) -> None:
    """In bytes, seconds, hundredths of the memory, or collectives."""
    assert parse_budget(text).most == pytest.approx(most)


def test_what_is_no_budget() -> None:
    with pytest.raises(CaptureError, match="'wire bytes <= 2 GB'"):
        parse_budget("all-gathr: none")


def test_a_golden_keeps_what_is_compared(sample: SampleCapture, tmp_path: Path) -> None:
    path = tmp_path / "golden.json"
    report = inspect(sample("fsdp_tp:loss"))
    path.write_bytes(golden_of(judge("loss", report, None, ()).found))
    again = judge("loss", report, read_golden(str(path)), ())
    assert again.passed
    assert again.changes is not None
    assert again.changes.same == 11
    assert not judge("loss", inspect(sample("tensor_parallel:loss")), read_golden(str(path)), ()).passed


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A golden with one collective."""
    path = tmp_path / "golden.json"
    path.write_bytes(golden_of(Fingerprint("f", "hlo", ((_sending(8, 1), 2),), ())))
    return path


def test_a_golden_is_a_text_that_is_kept_in_a_repository(small: Path) -> None:
    """Spaced as Python's `json` does it, so that lines differ only where the program does."""
    text = small.read_text("utf-8")
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


def test_a_golden_has_a_limit(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = small.stat().st_size
    monkeypatch.setattr(golden, "MAX_BYTES", size)
    assert read_golden(str(small)).count == 2
    monkeypatch.setattr(golden, "MAX_BYTES", size - 1)
    with pytest.raises(CaptureError, match="is larger than"):
        read_golden(str(small))


def test_a_golden_is_named_by_its_way_from_here(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is outside the working directory, as the user has written it."""
    monkeypatch.chdir(small.parent)
    assert read_golden(str(small)).title == "f, golden.json"
    (small.parent / "below").mkdir()
    monkeypatch.chdir("below")
    assert read_golden(str(small)).title == f"f, {small}"
    assert read_golden("../golden.json").title == "f, ../golden.json"


@pytest.mark.parametrize("edit", [('"count": 2', '"count": 0'), ('"frames": [', '"frames": [], "other": [')])
def test_a_collective_that_is_nowhere(small: Path, edit: tuple[str, str]) -> None:
    text = small.read_text()
    assert edit[0] in text
    small.write_text(text.replace(*edit))
    with pytest.raises(CaptureError, match="a collective that is nowhere"):
        read_golden(str(small))


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 combines none of them")
def test_a_golden_of_a_compiler_that_combines_nothing(sample: SampleCapture, tmp_path: Path) -> None:
    """The six all-reduces that JAX asks for are one in what runs, which is no other communication."""
    report = inspect(sample("data_parallel:grad"))
    found = judge("grad", report, None, ()).found
    ((combined, _),) = found.transfers
    alone = [_alone(combined, number) for number in range(len(combined.operands))]
    path = tmp_path / "golden.json"
    path.write_bytes(golden_of(replace(found, transfers=tuple(Counter(alone).items()))))
    verdict = judge("grad", report, read_golden(str(path)), ())
    assert verdict.passed
    told = f"no change in communication volume ({len(alone)} all-reduces over batch combined into 1;"
    assert summary(verdict).startswith(told)
    # One of them less is another program.
    path.write_bytes(golden_of(replace(found, transfers=tuple(Counter(alone[1:]).items()))))
    assert not judge("grad", report, read_golden(str(path)), ()).passed


def _alone(combined: Transfer, number: int) -> Transfer:
    """One operand of an all-reduce of floats over eight devices, as a collective of its own."""
    operand = combined.operands[number]
    size = 4 * operand.elements_in
    work = replace(combined.work, bytes_in=size, bytes_out=size, wire_bytes=size * 7 // 4)
    return replace(combined, work=work, operands=(operand,))


@pytest.mark.parametrize("name", ["tensor_parallel:grad", "moe:grad"])
def test_a_golden_of_another_jax(sample: SampleCapture, tmp_path: Path, name: str) -> None:
    other = os.environ.get("SHARDSCOPE_OTHER_PYTHON")
    if not other:
        pytest.skip("SHARDSCOPE_OTHER_PYTHON names no interpreter with another JAX")
    here = sample(name)
    assert here.subject is not None
    *_, there = capture(Request(f"{here.subject.script}:{here.subject.function}", live=False, python=other))
    assert there.subject is not None
    assert there.subject.jax != here.subject.jax
    path = tmp_path / "golden.json"
    path.write_bytes(golden_of(judge(name, inspect(there), None, ()).found))
    assert judge(name, inspect(here), read_golden(str(path)), ()).passed


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "shardscope.golden/1"}', '{"schema": "other"}', "\xff"])
def test_what_is_no_golden(tmp_path: Path, text: str) -> None:
    path = tmp_path / "golden.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CaptureError, match="is not a golden"):
        read_golden(str(path))
