"""The tables of a trace: its headline, its programs and what is not known of them, and how it ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shardscope.inspector.capture.model import Message
from shardscope.inspector.capture.protocol.trace import (
    Backend,
    CompiledProgram,
    Place,
    ProcessStarted,
    Value,
)
from shardscope.inspector.render.table import pieces, plain_text
from shardscope.inspector.render.tables.traces import endings, headline_parts, programs, retracings
from shardscope.inspector.report.traces import Process, Program, Trace
from shardscope.inspector.traces.retracing import retraced

from .by_hand import column, texts

CPU = Backend("0.12.0", "0.12.0", "cpu", "cpu", 8, 0, 1)


def process(rank: int | None = None, **fields: Any) -> Process:
    return Process(ProcessStarted(1, ("x.py",), "python", 0.0, rank), **fields)


def program(id: str = "step", number: int = 0, **fields: Any) -> Program:
    known = {"process": 0, "calls": 2, "collectives": {"all-reduce": 1}, "wire_bytes": 48, "path": None}
    names = ("process", "calls", "collectives", "wire_bytes", "path", "reason", "on")
    own = {name: fields.pop(name) for name in names if name in fields}
    compiled = CompiledProgram(number, id, id.partition(".")[0], **{"compile_seconds": 1.0, **fields})
    return Program(compiled=compiled, **{**known, **own})


def trace(*listed: Program, processes: tuple[Process, ...] = (), **fields: Any) -> Trace:
    made = Trace(("/usr/bin/python", "x.py", "a b"), processes or (process(),), listed, **fields)
    return replace(made, retraced=retraced(made))


def test_the_headline() -> None:
    """The command, its processes where there are several, each kind of devices once, and how it ended."""
    assert headline_parts(trace()) == ["python x.py 'a b'", "0 programs"]
    many = (process(backend=CPU), process(backend=CPU), process(backend=replace(CPU, platform="tpu")), process())
    assert headline_parts(trace(program(), processes=many, status=0)) == [
        "python x.py 'a b'",
        "4 processes",
        "cpu × 8, jax 0.12.0",
        "tpu × 8, jax 0.12.0",
        "1 program",
    ]
    assert headline_parts(Trace((), (process(),), ())) == ["trace", "0 programs"]


@pytest.mark.parametrize(
    ("status", "stopped", "said"),
    [
        (None, "", []),
        (0, "", []),
        (1, "", ["exit status 1"]),
        (-1, "", ["killed by signal 1"]),
        (-2, "", ["interrupted"]),
        (-9, "", ["killed by signal 9"]),
        (-9, "--timeout", ["ended by shardscope: --timeout"]),
    ],
)
def test_how_a_command_ended(status: int | None, stopped: str, said: list[str]) -> None:
    """A negative status is a signal's number, as `subprocess` has it."""
    found = trace(status=status, processes=(process(), process(stopped=stopped)))
    assert list(headline_parts(found))[3:] == said


def test_what_the_recording_took() -> None:
    took = (process(listing=1.0, capturing=0.0), process(listing=1.0))
    assert [*endings(trace())] == []
    assert [*endings(trace(seconds=8.0, processes=took))] == ["The command took 8 s, 2 s (25.0%) of it for this list."]
    assert [*endings(trace(seconds=0.0))] == ["The command took 0 ns, 0 ns of it for this list."]
    captured = (process(listing=1.0, capturing=3.0), process(capturing=0.5))
    (line,) = endings(trace(seconds=8.0, processes=captured))
    assert line.endswith("1 s (12.5%) of it for this list, 3.5 s for captures.")
    said = (Message("warning", "once", "run"), Message("warning", "once", "run"))
    found = trace(program(), ended="--timeout", processes=(process(messages=said), process(messages=said)))
    assert [*endings(found)] == [
        "Ended by shardscope: --timeout.",
        "warning: once",
        "The full report of one: --match PROGRAM",
    ]


def test_programs() -> None:
    """Unknown is said as unknown, nothing as nothing."""
    there, line = Place("/code/model.py", 7), Place("/code/train.py", 0)
    table = programs(
        trace(
            program(source=there, call=line),
            program("loss", calls=None, cached=True, transformed=True),
            program("init", wire_bytes=0, collectives={}, internal=True, source=there, reason="x"),
            program("old", wire_bytes=None, collectives=None, reason="no text", earlier=True, calls=1200),
            program("two", collectives={"b": 2, "a": 1}),
            program("helper", internal=True, collectives={}, wire_bytes=0),
        )
    )
    assert texts(table) == [
        ["96 B", "48 B", "2", "step", "1 all-reduce", "1 s", "model.py:7", "train.py"],
        ["unknown", "48 B", "unknown", "loss transformed", "1 all-reduce", "1 s cached", "", ""],
        ["0", "0", "2", "init", "none", "1 s", "", ""],
        ["unknown", "unknown", "1,200", "old", "unknown: no text", "earlier", "", ""],
        ["96 B", "48 B", "2", "two", "1 a, 2 b", "1 s", "", ""],
    ]
    assert [pieces(row.cells[0])[0].role for row in table.rows] == ["", "warning", "aside", "warning", ""]
    assert [pieces(row.cells[1])[0].role for row in table.rows] == ["", "", "aside", "warning", ""]
    assert [pieces(row.cells[2])[0].role for row in table.rows] == ["", "warning", "", "", ""]
    assert not any(row.minor for row in table.rows)
    assert [plain_text(note).partition(",")[0] for note in table.notes()] == [
        "and 1 operation outside of jit",
        "calls are unknown where those of one function's programs could not be distinguished",
    ]
    assert [*programs(trace(program())).notes()] == []


def test_helpers_are_one_line() -> None:
    """Operations outside of jit that communicate nothing, and of which all is known."""
    helpers = [program(f"add.{number}", internal=True, collectives={}, compile_seconds=2.0) for number in range(3)]
    (note,) = programs(trace(*helpers)).notes()
    assert plain_text(note) == "and 3 operations outside of jit, without communication, compiled in 6 s"
    unknown = replace(helpers[0], calls=None)
    assert len([*programs(trace(unknown)).notes()]) == 1
    for known in ({"internal": False}, {"collectives": {"all-reduce": 1}}, {"reason": "no text"}):
        other = program("add", **{"internal": True, "collectives": {}, **known})
        assert column(programs(trace(other)), "program") == ["add"]


def test_arguments_of_a_program() -> None:
    given = (Value("x", "f32[2]", "P('x')"), Value("y", "f32[4]", None))
    found = program(arguments=given, static=("n=2", "flag=True"))
    table = programs(trace(found))
    assert [(each.label, each.text) for each in table.details(found)] == [
        ("arguments", "x: f32[2] P('x')\ny: f32[4]"),
        ("static", "n=2\nflag=True"),
    ]
    assert table.details(None) == ()


def test_programs_of_some_ranks() -> None:
    """One row for what all ranks have alike; the ranks of what some have."""
    ranks = tuple(process(number) for number in range(3))
    everywhere = [program(process=number) for number in range(3)]
    found = trace(*everywhere, program("own", process=1), program("own", process=2), processes=ranks)
    assert column(programs(found), "program") == ["step", "1/own on ranks 1–2"]


def test_functions_that_were_compiled_again() -> None:
    shapes = [(Value("x", f"f32[{size}]", None),) for size in (2, 4, 8)]
    listed = [program(f"step.{number}", number, arguments=given) for number, given in enumerate(shapes)]
    table = retracings(trace(*listed, program("once")))
    assert texts(table) == [
        ["step.0", "1 s", ""],
        ["step.1", "1 s", "x: f32[2] → f32[4]"],
        ["step.2", "1 s", "x: f32[4] → f32[8]"],
    ]
    assert [row.value for row in table.rows] == listed
    assert table.heading
    assert retracings(trace(program("once"))).heading == ""
