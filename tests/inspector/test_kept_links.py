"""What belongs to each line of a kept capture, as somebody has looked at it: `make approve` rewrites it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import load
from shardscope.inspector.collectives.stage import collectives_of
from shardscope.inspector.correspondence.collectives import counterparts
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.why_lines import cause_line, why_line
from shardscope.inspector.report import Report
from shardscope.inspector.report.places import Place, ProbePlace, SourceLine, StagePlace
from shardscope.inspector.selection.selection import linked
from shardscope.parsers.sharding_syntax.mesh import join_axes

KEPT = Path(__file__).parents[1] / "command" / "approved"


@pytest.mark.parametrize("name", ["gathered_twice", "typed"])
def test_links(name: str, request: pytest.FixtureRequest) -> None:
    report = inspect(load(KEPT / f"{name}.capture"))
    text = "".join(f"{line}\n" for line in links(report))
    path = KEPT / "texts" / f"{name}.links"
    if request.config.getoption("--snapshot-update"):
        path.write_text(text)
    assert text.splitlines() == path.read_text().splitlines()


@pytest.mark.parametrize("name", ["embedded", "exchange", "rounds", "typed"])
def test_counterparts_are_of_one_kind_and_line(name: str) -> None:
    report = inspect(load(KEPT / f"{name}.capture"))
    pairs = 0
    for stage in report.program.stages:
        for one in report.collectives:
            origin = report.program.stage(one.stage)
            assert origin is not None
            for other in counterparts(origin, one, stage, collectives_of(report.program, stage)).found:
                pairs += 1
                assert (other.stage, other.kind) == (stage.name, one.kind)
                frames = [(frame.file, frame.line) for frame in other.source.stack]
                assert one.source.frame is not None
                assert other == one or (one.source.frame.file, one.source.frame.line) in frames
    assert pairs > len(report.collectives)


def links(report: Report) -> Iterator[str]:
    """For each place, the lines of two stages that belong to it, and what else does."""
    for stage in report.program.stages:
        for match in re.finditer(rb"[^\s}].*", stage.text.data):
            if text := found(report, StagePlace(stage.name, match.start())):
                yield f"{stage.name}:{stage.text.position(match.start())[0]} {text}"
    for line in range(1, 80):
        if text := found(report, SourceLine("/tmp/programs/rare.py", line)):
            yield f"line {line} {text}"
    listed: list[tuple[str, Place]] = [
        *(("probe", ProbePlace(number)) for number in range(len(report.capture.probes))),
        *((f"collective {each.kind}", each) for each in report.collectives),
        *((f"value {each.name} {each.role}", each) for each in report.shardings),
        *((f"finding {each.rule}", each) for each in report.findings),
    ]
    for word, place in listed:
        yield f"{word} {found(report, place)}"


def found(report: Report, place: Place) -> str:
    """The places in the lowered and in the compiled program, collectives, and why."""
    parts = []
    for name in ("jaxpr", "stablehlo", "hlo"):
        stage = report.program.stage(name)
        assert stage is not None
        each = linked(report, place, stage)
        lines = [":".join(map(str, stage.text.position(span.start))) for span in each.spans]
        if lines:
            more = f" … {zlib.crc32(str(lines).encode()):08x}" if len(lines) > 4 else ""
            parts.append(f"{name} {each.confidence} {' '.join(lines[:4])}{more}")
    parts += ["at " + " ".join(f"{frame.line}:{frame.column}" for frame in each.stack)] if each.stack else []
    parts += [f"is {each.collective.kind}"] if each.collective else []
    parts += [f"with {other.kind} {join_axes(other.axes or ())}" for other in each.collectives]
    parts += [f"because {cause_line(cause, report)}" for cause in each.causes]
    parts += [why_line(why, "it", report) for why in each.why]
    parts += [f"{len(each.conflicts)} conflicts"] if each.conflicts else []
    return "; ".join(parts)
