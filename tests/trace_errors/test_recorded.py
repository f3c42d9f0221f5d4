"""Explanations of failing scripts, from recorded runs of them and of their edited copies.

What is approved says of each edit how plain JAX ended the script with it. `make approve` renews the texts; an edit that
writes another text than it did needs `python -m tests.trace_errors.recorded NAME` first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture, Failure
from shardscope.inspector.capture.protocol.events import StackFrame
from shardscope.inspector.ir.program import Program, file_on_disk
from shardscope.inspector.render.finding_facts import verdict
from shardscope.inspector.report import Fix, SourcePosition
from shardscope.inspector.report.edits import diff_of
from shardscope.inspector.trace_errors import remedies
from shardscope.inspector.trace_errors.remedies import explained_run

from .recorded import HERE, commands, ended, recorded, replaying

pytestmark = pytest.mark.once

APPROVED = HERE / "approved"


@pytest.mark.parametrize("place", ["errors", "programs", "trace_errors"])
def test_what_is_said_of_the_scripts_of_a_folder(place: str, request: pytest.FixtureRequest) -> None:
    names = [name for name, command in commands().items() if Path(command.script).parent.name == place]
    found = {name: "\n".join((*_explained(name), "", *_ended(name), "")) for name in names}
    if request.config.getoption("--snapshot-update"):
        for name, text in found.items():
            (APPROVED / name).write_text(text)
    assert found == {name: (APPROVED / name).read_text() for name in names}


def test_an_error_that_does_not_come_again_is_not_explained() -> None:
    """What a script raises on another platform than its target's says nothing of the target's error."""
    command, said = commands()["constraint_too_long"], "Failed to find assignment for logical_axis_index 1"
    lines = Path(command.script).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "return jax.lax.with_sharding_constraint" in text)
    other = Failure("function", said, "script", said=said, type="NotImplementedError")
    there = replace(other, type="ValueError", stack=(StackFrame(command.script, "constrain", line),))
    with replaying(recorded()["constraint_too_long"]):
        assert explained_run(command, other) is None
        assert explained_run(command, replace(there, type="KeyError")) is None
        assert explained_run(command, replace(other, type="ValueError")) is None
        assert explained_run(command, there) is not None


def test_so_many_runs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(remedies, "MAX_RUNS", 1)
    for seconds, count in ((150.0, 1), (-1.0, 0)):
        monkeypatch.setattr(remedies, "MAX_SECONDS", seconds)
        monkeypatch.setattr(remedies, "MAX_LAST_SECONDS", seconds)
        with replaying(recorded()["looped"]):
            remedies.explained_run(commands()["looped"], tell=told.append)
        assert told.count("trying a change") == count
        told.clear()


def _explained(name: str) -> Iterator[str]:
    with replaying(recorded()[name]):
        found = explained_run(commands()[name])
    if found is None:
        yield "not explained"
        return
    yield found.title
    yield f"argument {found.argument!r}, {_place(found.where)}"
    for step in found.steps:
        yield f"- {step.what}, {_place(step.source)}"
    for fix in found.fixes:
        yield f"fix: {fix.title}"
        yield f"  {verdict(fix)}"
        yield from _diff(name, fix)


def _ended(name: str) -> Iterator[str]:
    with replaying(recorded()[name]):
        tried = list(ended(name))
    for candidate, texts, run in tried:
        if texts is None or run is None:
            yield f"idea: {candidate.title}"
            continue
        assert run.said != "a text that was not recorded", candidate.title
        kinds = [kind for kind in ("is_other_data", "is_spelling", "is_last") if getattr(candidate, kind)]
        yield " ".join([f"{run.error or 'runs'}: {candidate.title}", *kinds])
        yield from _diff(name, Fix(candidate.title, candidate.edits))


def _diff(name: str, fix: Fix) -> list[str]:
    program = Program(Capture(script_text=file_on_disk(commands()[name].script)))
    return [f"  {line}" for line in diff_of(program, fix) if line[0] in "+-" and line[:3] not in ("+++", "---")]


def _place(source: SourcePosition | None) -> str:
    frame = None if source is None else source.frame
    return "nowhere" if frame is None else f"line {frame.line}"
